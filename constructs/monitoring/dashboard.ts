import { type Input, when } from "../../helm/index";
import dashboard from "./dashboard.json";

type Panel = (typeof dashboard.panels)[number];

/** Each row of the dashboard with its panels, in the order of the file. */
function rowsOf(panels: readonly Panel[]): readonly (readonly Panel[])[] {
  const starts = panels.flatMap(({ type }, index) => (type === "row" ? [index] : []));
  return starts.map((start, row) => panels.slice(start, starts[row + 1]));
}

/** Whether panels ask Prometheus for nothing but the metrics whose names begin with `prefix`. */
function asksOnly(panels: readonly Panel[], prefix: string): boolean {
  const metrics = JSON.stringify(panels).match(/\blinkerd_cni_\w+/g) ?? [];
  return metrics.length > 0 && metrics.every((name) => name.startsWith(prefix));
}

/**
 * The dashboard of dashboard.json, which Grafana can edit (Settings, JSON Model). Panels that show only the metrics of a
 * feature that is off are left out, and so is a row that has no other panels.
 *
 * @param features - how the names of a feature's metrics begin, and whether it is on
 */
export function dashboardFor(features: Readonly<Record<string, Input<boolean>>>): Readonly<Record<string, unknown>> {
  const guarded = (panel: Panel, asking: readonly Panel[]) => {
    const [, enabled = true] = Object.entries(features).find(([prefix]) => asksOnly(asking, prefix)) ?? [];
    return when(enabled, panel);
  };
  const rows = rowsOf(dashboard.panels);
  const panels = rows.flatMap((row) => row.map((panel) => guarded(panel, panel.type === "row" ? row : [panel])));
  return { ...dashboard, panels: panels.filter((panel) => panel !== undefined) };
}
