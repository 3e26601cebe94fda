interface Numbers {
  /** Milliseconds. */
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Requests to the API server, a call. */
  readonly requests: number;
}

/** One way of calling, measured; `ratio` is ours in parts of the peer's. */
export interface ScenarioResult {
  readonly pod: "meshed" | "unmeshed";
  /** Milliseconds until the API server answers. */
  readonly delayMs: number;
  /** How many calls are started at once. */
  readonly parallel: number;
  /** How many times that is done. */
  readonly rounds: number;
  readonly ours: Numbers;
  readonly peer?: Numbers;
  readonly ratio?: { readonly median: number; readonly p99: number };
}

/** What a call costs besides time. */
export interface CallCost {
  readonly name: string;
  readonly pod: string;
  /** Programs started; unknown without strace. */
  readonly programs?: number;
  readonly peakMiB: number;
}

/** The plugin's part of bench/results.json. */
export interface PluginResults {
  /** `2026-07-01`. */
  readonly date: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly kernel: string };
  readonly scenarios: readonly ScenarioResult[];
  readonly costs: readonly CallCost[];
}

const SECOND = 1000;

function time(milliseconds: number): string {
  return milliseconds < SECOND ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / SECOND).toFixed(1)} s`;
}

function what({ pod, delayMs, parallel }: ScenarioResult): string {
  const many = parallel === 1 ? "" : `, ${parallel} at once`;
  return `${pod === "meshed" ? pod : "not meshed"}${many}, API server ${delayMs === 0 ? "at once" : `after ${delayMs} ms`}`;
}

function row(result: ScenarioResult): string {
  const { ours, peer, ratio } = result;
  const both = (of: (numbers: Numbers) => string) => [of(ours), peer === undefined ? "-" : of(peer)];
  const requests = peer === undefined ? ours.requests : `${ours.requests} against ${peer.requests}`;
  const median = [...both(({ medianMs }) => time(medianMs)), ratio?.median.toFixed(2) ?? "-"];
  const p99 = [...both(({ p99Ms }) => time(p99Ms)), ratio?.p99.toFixed(2) ?? "-"];
  return `| ${[what(result), ...median, ...p99, requests].join(" | ")} |`;
}

/** The results as Markdown. */
export function pluginTable({ date, machine, scenarios, costs }: PluginResults): string {
  const spent = costs
    .filter(({ pod }) => pod === "meshed")
    .map(({ name, programs, peakMiB }) => {
      const who = name === "ours" ? "ours" : "linkerd's";
      return `${who} starts ${programs ?? "an unknown number of"} programs and takes ${Math.round(peakMiB)} MiB at its peak`;
    });
  return [
    `${date}, ${machine.cores} cores, kernel ${machine.kernel}.`,
    "",
    "| ADD | ours, median | linkerd's | ratio | ours, p99 | linkerd's | ratio | requests |",
    "|---|---|---|---|---|---|---|---|",
    ...scenarios.map(row),
    "",
    `For a meshed pod ${spent.join("; ")}.`,
  ].join("\n");
}
