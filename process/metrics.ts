/** Values of a metric's labels, by name. */
type LabelValues<L extends string> = Readonly<Record<L, string>>;

export interface Counter<L extends string = never> {
  /** @param by increment. @default 1 */
  inc(labels?: LabelValues<L>, by?: number): void;
}

export interface Histogram<L extends string = never> {
  observe(value: number, labels?: LabelValues<L>): void;
}

interface Definition<L extends string = never> {
  readonly name: string;
  readonly help: string;
  /** Names of labels, in output order. */
  readonly labels?: readonly L[];
}

/** Maximum series of one metric; further label values are counted as `other`. */
const MAX_SERIES = 200;

function quoted(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function labelled(names: readonly string[], values: readonly string[]): string {
  const pairs = names.map((name, index) => `${name}="${quoted(values[index] ?? "")}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

/** Series of one metric by their label values. */
class Series<L extends string, T> {
  private readonly found = new Map<string, { readonly values: readonly string[]; readonly state: T }>();

  constructor(
    private readonly names: readonly L[],
    private readonly create: () => T,
  ) {
    // Without labels there is one series, which exists from the start.
    if (names.length === 0) this.at(undefined);
  }

  at(labels: LabelValues<L> | undefined): T {
    const values = this.names.map((name) => labels?.[name] ?? "");
    const known = this.found.get(values.join("\0"));
    if (known !== undefined) return known.state;
    const kept = this.found.size < MAX_SERIES ? values : values.map(() => "other");
    const key = kept.join("\0");
    const entry = this.found.get(key) ?? { values: kept, state: this.create() };
    this.found.set(key, entry);
    return entry.state;
  }

  lines(print: (values: readonly string[], state: T) => readonly string[]): readonly string[] {
    return [...this.found.values()].flatMap(({ values, state }) => print(values, state));
  }
}

function bucketLines(
  names: readonly string[],
  values: readonly string[],
  buckets: readonly number[],
  counts: readonly number[],
): readonly string[] {
  let total = 0;
  return [...buckets.map(String), "+Inf"].map((bound, index) => {
    total += counts[index] ?? 0;
    return `_bucket${labelled([...names, "le"], [...values, bound])} ${total}`;
  });
}

/**
 * Metrics of one process in the Prometheus text format. The usual client library alone would double the installer's
 * memory beyond its runtime.
 */
export class Registry {
  private readonly printers: (() => string)[] = [];

  /** @param prefix of every metric's name */
  constructor(private readonly prefix = "") {}

  counter<L extends string = never>(definition: Definition<L>): Counter<L> {
    const names = definition.labels ?? [];
    const series = new Series(names, () => ({ value: 0 }));
    this.add(definition, "counter", () => series.lines((values, { value }) => [`${labelled(names, values)} ${value}`]));
    return {
      inc: (labels, by = 1) => {
        series.at(labels).value += by;
      },
    };
  }

  /** A gauge whose value is read at each scrape. */
  gauge(definition: Definition, read: () => number): void {
    this.add(definition, "gauge", () => [` ${read()}`]);
  }

  /** A gauge with one label, whose values are read at each scrape: one for each label value. */
  gaugeBy(
    definition: Omit<Definition, "labels"> & { readonly label: string },
    read: () => Readonly<Record<string, number>>,
  ): void {
    const { label } = definition;
    this.add(definition, "gauge", () =>
      Object.entries(read()).map(([value, number]) => `${labelled([label], [value])} ${number}`),
    );
  }

  /** @param buckets their upper bounds, ascending, without infinity */
  histogram<L extends string = never>(definition: Definition<L>, buckets: readonly number[]): Histogram<L> {
    const names = definition.labels ?? [];
    const series = new Series(names, () => ({ counts: [...buckets, 0].map(() => 0), sum: 0 }));
    this.add(definition, "histogram", () =>
      series.lines((values, { counts, sum }) => [
        ...bucketLines(names, values, buckets, counts),
        `_sum${labelled(names, values)} ${sum}`,
        `_count${labelled(names, values)} ${counts.reduce((total, count) => total + count, 0)}`,
      ]),
    );
    return {
      observe: (value, labels) => {
        const state = series.at(labels);
        const index = buckets.findIndex((bound) => value <= bound);
        const bucket = index < 0 ? buckets.length : index;
        state.counts[bucket] = (state.counts[bucket] ?? 0) + 1;
        state.sum += value;
      },
    };
  }

  /** All metrics in the Prometheus text format. */
  text(): string {
    return this.printers.map((print) => print()).join("");
  }

  private add({ name, help }: Pick<Definition, "name" | "help">, type: string, lines: () => readonly string[]): void {
    const full = `${this.prefix}${name}`;
    const head = `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n`;
    this.printers.push(
      () =>
        head +
        lines()
          .map((line) => `${full}${line}\n`)
          .join(""),
    );
  }
}
