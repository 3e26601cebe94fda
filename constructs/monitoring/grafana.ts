/** A few of Grafana's words, enough for a dashboard whose panels are one line each. */

/** What a panel asks Prometheus, and how it names each series, such as `{{node}}`. */
export interface Query {
  readonly expr: string;
  readonly legend: string;
}

export const query = (expr: string, legend = "__auto"): Query => ({ expr, legend });

type Unit = "short" | "s" | "percentunit" | "ops";

/** A page beside a panel or a dashboard. */
export interface Link {
  readonly title: string;
  readonly url: string;
}

/** A panel before it has a place. */
export interface Panel {
  readonly type: "stat" | "timeseries";
  readonly title: string;
  readonly description: string;
  /** Pages that say what to do. */
  readonly links: readonly Link[];
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** From this value on it is shown in red. */
  readonly alarm?: number;
}

interface Look {
  readonly unit?: Unit;
}

/** One number, as it is now; red from a value on. */
export function stat(title: string, expr: string, look: Look & { readonly alarm?: number } = {}): Panel {
  return { type: "stat", title, description: "", links: [], unit: "short", queries: [query(expr)], ...look };
}

/** Curves over time. */
export function curves(title: string, queries: readonly Query[], look: Look = {}): Panel {
  return { type: "timeseries", title, description: "", links: [], unit: "short", queries, ...look };
}

/** Panels side by side, under a title. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Values that are chosen at the top of a dashboard, by the label of a metric. */
export interface Variable {
  readonly label: string;
  readonly metric: string;
}

export interface DashboardProps {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly links: readonly Link[];
  readonly variables: readonly Variable[];
  readonly rows: readonly Row[];
}

/** A panel's place on Grafana's grid of 24 columns. */
export interface GridPos {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

const COLUMNS = 24;
const HEIGHTS: Readonly<Record<Panel["type"], number>> = { stat: 4, timeseries: 8 };
const DATASOURCE = { type: "prometheus", uid: "$datasource" };

const OPTIONS: Readonly<Record<Panel["type"], object>> = {
  stat: { colorMode: "value", graphMode: "area", reduceOptions: { calcs: ["lastNotNull"] } },
  timeseries: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
};

function thresholds(alarm: number | undefined) {
  const steps = [{ color: "green" }, ...(alarm === undefined ? [] : [{ color: "red", value: alarm }])];
  return { mode: "absolute", steps };
}

function panelJson({ type, title, description, links, unit, queries, alarm }: Panel, gridPos: GridPos) {
  const targets = queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode("A".charCodeAt(0) + index),
    datasource: DATASOURCE,
    expr,
    legendFormat: legend,
  }));
  const defaults = { unit, min: 0, thresholds: thresholds(alarm) };
  return {
    type,
    title,
    description,
    links: links.map((link) => ({ ...link, targetBlank: true })),
    gridPos,
    datasource: DATASOURCE,
    targets,
    fieldConfig: { defaults, overrides: [] },
    options: OPTIONS[type],
  };
}

const rowJson = (title: string, y: number) => ({
  type: "row",
  title,
  collapsed: false,
  gridPos: { x: 0, y, w: COLUMNS, h: 1 },
  panels: [],
});

type Placed = ReturnType<typeof panelJson> | ReturnType<typeof rowJson>;

/** Rows one below the other, the panels of each sharing its width. */
function placed(rows: readonly Row[]): readonly (Placed & { readonly id: number })[] {
  const panels: Placed[] = [];
  let y = 0;
  for (const { title, panels: own } of rows) {
    const w = COLUMNS / own.length;
    if (!Number.isInteger(w)) throw new Error(`row "${title}": ${own.length} panels do not share ${COLUMNS} columns`);
    const h = Math.max(...own.map(({ type }) => HEIGHTS[type]));
    panels.push(rowJson(title, y), ...own.map((panel, index) => panelJson(panel, { x: index * w, y: y + 1, w, h })));
    y += h + 1;
  }
  return panels.map((panel, index) => ({ id: index + 1, ...panel }));
}

/** Several may be chosen; all of them also stand for series without the label. */
function variableJson({ label, metric }: Variable) {
  const definition = `label_values(${metric}, ${label})`;
  return {
    name: label,
    label,
    type: "query",
    datasource: DATASOURCE,
    definition,
    query: { query: definition, refId: label },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: ["All"], value: ["$__all"] },
  };
}

/** A dashboard as Grafana imports it. */
export function dashboardJson({ uid, title, description, tags, links, variables, rows }: DashboardProps) {
  const datasource = { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" };
  return {
    uid,
    title,
    description,
    tags,
    links: links.map((link) => ({ ...link, type: "link", icon: "doc", targetBlank: true })),
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: "1m",
    time: { from: "now-6h", to: "now" },
    templating: { list: [datasource, ...variables.map(variableJson)] },
    panels: placed(rows),
  };
}
