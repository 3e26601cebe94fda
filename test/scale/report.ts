/** The table of the simulation's phases. */
import { byKind, peakPerSecond, type Request } from "./audit";
import type { Phase } from "./phases";

const cells = (words: readonly (string | number)[]) => `| ${words.join(" | ")} |\n`;
const perSecond = (count: number, { begun, ended }: Phase) => (count * 1000) / (ended - begun);
const during = (requests: readonly Request[], { begun, ended }: Phase) =>
  requests.filter(({ at }) => begun <= at && at < ended);

/** The table of docs/contribute/benchmarks.md. */
export function table(phases: readonly Phase[], requests: readonly Request[]): string {
  const head = [
    "phase",
    "s",
    "requests",
    "a second, at most",
    "a node and hour",
    "connections",
    "kB asked",
    "kB answered",
    "API server, cores",
    "API server, MiB",
    "etcd, MiB",
    "all nodes, cores",
  ];
  const rows = phases.map((phase) => {
    const asked = during(requests, phase);
    return cells([
      phase.name,
      Math.round((phase.ended - phase.begun) / 1000),
      asked.length,
      peakPerSecond(asked),
      phase.nodes === undefined ? "" : ((perSecond(asked.length, phase) * 3600) / phase.nodes).toFixed(1),
      phase.connections,
      Math.round(phase.asked / 1000),
      Math.round(phase.answered / 1000),
      phase.apiServerMiB === 0 ? "" : perSecond(phase.apiServerCpu, phase).toFixed(2),
      phase.apiServerMiB || "",
      phase.etcdMiB,
      perSecond(phase.nodesCpu, phase).toFixed(2),
    ]);
  });
  const kinds = phases.map(
    (phase) =>
      `\n${phase.name}: ${byKind(during(requests, phase))
        .map(([kind, count]) => `${count} ${kind}`)
        .join(", ")}\n`,
  );
  return [cells(head), `|---|${"--:|".repeat(head.length - 1)}\n`, ...rows, ...kinds].join("");
}

/** The same, for a test. */
export const json = (phases: readonly Phase[], requests: readonly Request[]): string =>
  JSON.stringify(
    Object.fromEntries(phases.map((phase) => [phase.name, Object.fromEntries(byKind(during(requests, phase)))])),
  );
