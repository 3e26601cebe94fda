import { createMetrics as repairMetrics } from "../../controllers/repair/metrics";
import { createInstruments as installerInstruments } from "../../installer/telemetry/instruments";
import { createMetrics as nriMetrics } from "../../nri/metrics";

/** The value of a metric that a process exposes; `name` with labels if it has any. */
export function metricIn(text: string, name: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return Number(line?.split(" ")[1]);
}

/** Metrics of the installer, the repair controller and the NRI plugin, with each label set and each gauge read once. */
export async function exposedMetrics(): Promise<string> {
  const installer = installerInstruments();
  installer.read({ chained: () => true, ready: () => true, reached: () => true });
  installer.installs.inc({ step: "a" });
  installer.rechains.inc({ file: "a" });
  installer.contested.inc({ file: "a" });
  installer.pluginCalls.inc({ verb: "ADD", decision: "redirect", code: "" });
  installer.pluginLookups.inc({ way: "installer" });
  for (const histogram of [installer.pluginSeconds, installer.pluginRequests]) histogram.observe(1, { verb: "ADD" });
  const repair = repairMetrics();
  const none = () => 0;
  repair.read({ broken: none, notRedirected: none, suspendedOwners: none, installerReady: () => true });
  const nri = nriMetrics({ connected: () => true, synchronized: () => true });
  nri.pods.inc({ event: "run", outcome: "redirected" });
  nri.lookups.inc();
  nri.seconds.observe(1, { event: "run" });
  return installer.registry.text() + repair.registry.text() + nri.registry.text();
}
