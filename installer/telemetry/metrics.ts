/** Values of a metric's labels, in the order of their names. */
type LabelValues = readonly string[];

export interface Counter {
  add(...labels: LabelValues): void;
}

export interface Histogram {
  observe(value: number, ...labels: LabelValues): void;
}

interface Definition {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/** More series than this are one too many for a node: what comes later is counted under label values `other`. */
const MAX_SERIES = 200;

function quoted(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function labelled(names: readonly string[], values: LabelValues): string {
  const pairs = names.map((name, index) => `${name}="${quoted(values[index] ?? "")}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

/** Series of one metric by their label values. */
class Series<T> {
  private readonly found = new Map<string, { readonly values: LabelValues; readonly state: T }>();
  constructor(
    private readonly labels: readonly string[],
    private readonly create: () => T,
  ) {
    if (labels.length === 0) this.at([]);
  }

  at(values: LabelValues): T {
    const known = this.found.get(values.join("\0"));
    if (known !== undefined) return known.state;
    const kept = this.found.size < MAX_SERIES ? values : this.labels.map(() => "other");
    const key = kept.join("\0");
    const entry = this.found.get(key) ?? { values: kept, state: this.create() };
    this.found.set(key, entry);
    return entry.state;
  }

  lines(print: (values: LabelValues, state: T) => readonly string[]): readonly string[] {
    return [...this.found.values()].flatMap(({ values, state }) => print(values, state));
  }
}

function bucketLines(
  names: readonly string[],
  values: LabelValues,
  bounds: readonly number[],
  counts: readonly number[],
) {
  let total = 0;
  return [...bounds.map(String), "+Inf"].map((bound, index) => {
    total += counts[index] ?? 0;
    return `_bucket${labelled([...names, "le"], [...values, bound])} ${total}`;
  });
}

/**
 * Metrics in the Prometheus text format. The usual client library alone would double what this process takes beyond
 * its runtime.
 */
export class Metrics {
  private readonly printers: (() => string)[] = [];

  counter(definition: Definition): Counter {
    const labels = definition.labels ?? [];
    const series = new Series(labels, () => ({ value: 0 }));
    this.add(definition, "counter", () =>
      series.lines((values, { value }) => [`${labelled(labels, values)} ${value}`]),
    );
    return {
      add: (...values) => {
        series.at(values).value += 1;
      },
    };
  }

  /** A gauge whose value is asked for when the metrics are read. */
  gauge(definition: Definition, read: () => number): void {
    this.add(definition, "gauge", () => [` ${read()}`]);
  }

  histogram(definition: Definition, bounds: readonly number[]): Histogram {
    const labels = definition.labels ?? [];
    const series = new Series(labels, () => ({ counts: [...bounds, 0].map(() => 0), sum: 0 }));
    this.add(definition, "histogram", () =>
      series.lines((values, { counts, sum }) => [
        ...bucketLines(labels, values, bounds, counts),
        `_sum${labelled(labels, values)} ${sum}`,
        `_count${labelled(labels, values)} ${counts.reduce((total, count) => total + count, 0)}`,
      ]),
    );
    return {
      observe: (value, ...values) => {
        const state = series.at(values);
        const index = bounds.findIndex((bound) => value <= bound);
        const bucket = index < 0 ? bounds.length : index;
        state.counts[bucket] = (state.counts[bucket] ?? 0) + 1;
        state.sum += value;
      },
    };
  }

  text(): string {
    return this.printers.map((print) => print()).join("");
  }

  private add({ name, help }: Definition, type: string, lines: () => readonly string[]): void {
    const head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    this.printers.push(
      () =>
        `${head}${lines()
          .map((line) => `${name}${line}\n`)
          .join("")}`,
    );
  }
}
