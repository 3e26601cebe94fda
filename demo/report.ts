import pc from "picocolors";
import { aligned } from "../cli/aligned";
import type { Probe } from "./scene";

/** One probe and who answered it. */
export interface ProbeResult extends Probe {
  readonly reached: string;
  readonly passed: boolean;
}

/** One ADD through the whole chain. */
export interface AddResult {
  readonly pod: string;
  readonly meshed: boolean;
  /** Milliseconds of our plugin, from start to exit of the process. */
  readonly milliseconds: number;
  readonly apiRequests: number;
}

/** The demonstration's results. */
export interface Report {
  readonly adds: readonly AddResult[];
  readonly probes: readonly ProbeResult[];
  /** The meshed pod's rules as nft lists them; absent if nft is not installed. */
  readonly rules?: string;
  /** Files of the node that differ after the uninstall; should be empty. */
  readonly differences: readonly string[];
  /** Parts that could not be shown on this machine. */
  readonly notShown: readonly string[];
}

/** Indented columns, two spaces apart. */
const table = (...rows: readonly (readonly string[])[]): string => aligned(rows.map((row) => ["", ...row])).trimEnd();

function addTable(adds: readonly AddResult[]): string {
  if (adds.length === 0) return "  none";
  const rows = adds.map(({ pod, meshed, milliseconds, apiRequests }) => {
    return [pod, meshed ? "yes" : "no", `${milliseconds.toFixed(1)} ms`, String(apiRequests)];
  });
  return table(["pod", "meshed", "ADD", "API requests"], ...rows);
}

function probeTable(probes: readonly ProbeResult[]): string {
  const rows = probes.map(({ title, from, to, port, family, uid, reached, passed, expect }) => {
    const verdict = passed ? pc.green("ok") : pc.red(`expected ${expect}`);
    return [title, from ?? "node", `${to}:${port}`, `v${family}`, `uid ${uid ?? 0}`, reached, verdict];
  });
  return table(["connection", "from", "to", "IP", "as", "reached", ""], ...rows);
}

/** Whether everything worked as expected. */
export function succeeded(report: Report): boolean {
  return report.probes.every((probe) => probe.passed) && report.differences.length === 0;
}

const sign = (good: boolean) => (good ? pc.green("✓") : pc.red("✗"));

/** The main results, one line each. */
function results({ probes, differences }: Report): string {
  const redirected = probes.filter(({ reached }) => reached.startsWith("proxy")).length;
  const right = probes.filter(({ passed }) => passed).length;
  const all = right === probes.length;
  const paths = all ? `: ${redirected} through the proxy, ${right - redirected} direct` : "";
  const node = differences.length === 0 ? "is as it was before, byte by byte" : `differs in: ${differences.join(", ")}`;
  const lines = [
    ...(probes.length === 0
      ? []
      : [`${sign(all)} ${all ? "all" : `${right} of`} ${probes.length} connections took the expected path${paths}`]),
    `${sign(differences.length === 0)} after the uninstall the node ${node}`,
  ];
  return `${pc.bold("Result")}\n  ${lines.join("\n  ")}`;
}

/** The report for people, with the result last. */
export function render(report: Report): string {
  const sections = [
    `${pc.bold("Pods started through the chain, the first calls")}\n${addTable(report.adds)}`,
    `${pc.bold("Connections")}\n${probeTable(report.probes)}`,
    ...(report.rules === undefined ? [] : [`${pc.bold("Rules in the meshed pod")}\n${report.rules}`]),
    ...report.notShown.map((what) => pc.yellow(`Not shown: ${what}`)),
    results(report),
    `${pc.bold("Into a cluster")}: README.md#install-it-into-a-cluster`,
  ];
  return `\n${sections.join("\n\n")}\n`;
}
