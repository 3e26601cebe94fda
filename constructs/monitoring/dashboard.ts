import { type Input, when } from "../../helm/index";
import dashboard from "./dashboard.json";

type Panel = (typeof dashboard.panels)[number];

/** Each row of the dashboard with its panels, in the order of the file. */
function rowsOf(panels: readonly Panel[]): readonly (readonly Panel[])[] {
  const starts = panels.flatMap(({ type }, index) => (type === "row" ? [index] : []));
  return starts.map((start, row) => panels.slice(start, starts[row + 1]));
}

/** Whether panels query only metrics whose names begin with `prefix`. */
function asksOnly(panels: readonly Panel[], prefix: string): boolean {
  const metrics = JSON.stringify(panels).match(/\blinkerd_cni_\w+/g) ?? [];
  return metrics.length > 0 && metrics.every((name) => name.startsWith(prefix));
}

/**
 * The dashboard of dashboard.json, which Grafana can edit (Settings, JSON Model). Panels that show only the metrics of
 * a disabled feature are left out, as are rows that become empty.
 *
 * @param features - the prefix of each feature's metrics, and whether the feature is enabled
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
