import { repository } from "../version";
import { curves, type DashboardProps, dashboardJson, type Panel, query, stat } from "./grafana";
import { added, NODE, quantile } from "./promql";

/** The window of Grafana's own choice, wide enough for the scrape interval. */
const RATE = "$__rate_interval";
const PER_SECOND = { unit: "ops" } as const;
const HERE = `{node=~"$node"}`;
const ADD = `{node=~"$node", verb="ADD"}`;

const cni = (name: string, selector = HERE) => `linkerd_cni_${name}${selector}`;
const nri = (name: string, selector = HERE) => cni(`nri_${name}`, selector);
const repair = (name: string, selector = HERE) => cni(`repair_controller_${name}`, selector);
/** How often something happens, by a label. */
const rate = (series: string, by: string) => query(`sum by (${by}) (rate(${series}[${RATE}]))`, legendOf(by));
const legendOf = (by: string) =>
  by
    .split(", ")
    .map((label) => `{{${label}}}`)
    .join(" ");
/** How often something has happened in the last hour, in all; 0 where it never did. */
const lastHour = (series: string) => `sum(${added(series, "1h")}) or vector(0)`;
/** A quantile of a histogram over all nodes. */
const share = (part: number, name: string, selector = HERE) =>
  query(quantile(part, [`linkerd_cni_${name}`, selector], RATE), `p${part * 100}`);
const p99 = (name: string, legend: string) => ({ ...share(0.99, name), legend });
/** Events of several kinds in one panel, each summed over the nodes. */
const each = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([legend, series]) => query(`sum(rate(${series}[${RATE}]))`, legend));

const runbook = (name: string): string => `${repository}/blob/main/docs/runbooks/${name}.md`;

/** What each panel shows, and the alerts whose runbooks say what to do about it. */
const MEANINGS: Readonly<Record<string, readonly [description: string, ...alerts: string[]]>> = {
  "Nodes ready": ["Nodes whose installer's /ready is 200: new meshed pods are redirected there."],
  "Nodes not ready": [
    "Nodes whose installer runs and is not ready. Meshed pods may start there without redirect, or not at all.",
    "LinkerdCNINotReady",
    "LinkerdCNINotConfigured",
  ],
  "ADD errors, 1 h": ["Pods that the plugin has kept from starting; the kubelet tries again.", "LinkerdCNIAddErrors"],
  "Contests, 1 h": [
    "How often another program has taken the plugin out of the CNI configuration.",
    "LinkerdCNIConfigContested",
  ],
  "Pods outside the mesh": ["Meshed pods that run without redirect.", "LinkerdCNINotRedirected"],
  "Suspended owners": [
    "Owners whose pods come back broken, so that the repair controller has stopped deleting them.",
    "LinkerdCNIRepairSuspended",
  ],
  "Calls by verb and decision": ["Calls of the container runtimes a second, and what the plugin did."],
  "Calls that failed, by code": ["Failed calls a second, by the code of the CNI error.", "LinkerdCNIAddErrors"],
  "Time of an ADD": ["From the start of the plugin's process to its end.", "LinkerdCNIAddSlow"],
  "p99 of the lookup and of the rules": [
    "What an ADD waits for: the API server, and the kernel that sets the rules.",
    "LinkerdCNIAddSlow",
    "LinkerdCNIApiUnreachable",
  ],
  "API requests of an ADD": ["Requests to the API server in one ADD. Pods that are not meshed need none."],
  "Slowest nodes, p99 of ADD": ["The five nodes on which an ADD takes longest.", "LinkerdCNIAddSlow"],
  "Chained and ready": [
    "Nodes with the plugin in their CNI configuration, and nodes that are ready.",
    "LinkerdCNIDown",
  ],
  "Changes of the node's files, by step": ["Files that installers write, a second. Few, except at updates."],
  "Repairs of the chain": [
    "How often a second the plugin is put back into a CNI configuration, and who had taken it out.",
    "LinkerdCNIConfigContested",
    "LinkerdCNIConfigInvalid",
  ],
  "Tokens for the plugin, by result": ["Requests for the plugin's token, a second.", "LinkerdCNITokenRenewalFailing"],
  "Broken pods": ["Pods whose network validator failed, by node.", "LinkerdCNINotRepaired"],
  Deletions: ["What became of broken pods, a second.", "LinkerdCNINotRepaired", "LinkerdCNIRepairSuspended"],
  "Deletion and Event, p99": ["How long the API server takes for the repair controller's requests."],
  Trouble: ["What the repair controller could not do, a second."],
  "Connected and synchronized": [
    "Nodes whose runtime is connected to the NRI plugin, and nodes whose running pods it has looked at.",
    "LinkerdCNINriNotConnected",
  ],
  "Pods by event and outcome": ["Pods that the NRI plugin looks at, a second.", "LinkerdCNIRedirectNotMended"],
  "Time of a pod, p99": ["How long the runtime waits for the NRI plugin."],
  "What it did": ["Pods mended in place, connections and requests, a second.", "LinkerdCNIRedirectMended"],
};

/** A panel with its meaning. @throws an Error if there is none */
function explained(panel: Panel): Panel {
  const [description, ...alerts] = MEANINGS[panel.title] ?? [];
  if (description === undefined) throw new Error(`panel ${panel.title} has no description`);
  return { ...panel, description, links: alerts.map((title) => ({ title, url: runbook(title) })) };
}

const definition: DashboardProps = {
  uid: "linkerd-cni",
  title: "Linkerd CNI",
  description: "The plugin on every node, its installer, the repair controller, and the NRI plugin",
  tags: ["linkerd", "cni"],
  links: [{ title: "Runbooks", url: runbook("README") }],
  variables: [{ label: "node", metric: "linkerd_cni_ready" }],
  rows: [
    {
      title: "Now",
      panels: [
        stat("Nodes ready", `sum(${cni("ready")})`),
        stat("Nodes not ready", `count(${cni("ready")} == 0) or vector(0)`, { alarm: 1 }),
        stat("ADD errors, 1 h", lastHour(cni("plugin_calls_total", '{node=~"$node", verb="ADD", code!=""}')), {
          alarm: 1,
        }),
        stat("Contests, 1 h", lastHour(cni("config_contested")), { alarm: 1 }),
        stat("Pods outside the mesh", `sum(${repair("pods_not_redirected")}) or vector(0)`, { alarm: 1 }),
        stat("Suspended owners", `sum(${repair("suspended_owners")}) or vector(0)`, { alarm: 1 }),
      ],
    },
    {
      title: "Pod starts",
      panels: [
        curves("Calls by verb and decision", [rate(cni("plugin_calls_total"), "verb, decision")], PER_SECOND),
        curves(
          "Calls that failed, by code",
          [rate(cni("plugin_calls_total", '{node=~"$node", code!=""}'), "verb, code")],
          PER_SECOND,
        ),
        curves(
          "Time of an ADD",
          [0.5, 0.9, 0.99].map((part) => share(part, "plugin_seconds", ADD)),
          { unit: "s" },
        ),
      ],
    },
    {
      title: "Where an ADD's time goes",
      panels: [
        curves(
          "p99 of the lookup and of the rules",
          [p99("plugin_lookup_seconds", "lookup"), p99("plugin_rules_seconds", "rules")],
          { unit: "s" },
        ),
        curves("API requests of an ADD", [
          query(
            `sum(rate(${cni("plugin_api_requests_sum", ADD)}[${RATE}])) / sum(rate(${cni("plugin_api_requests_count", ADD)}[${RATE}]))`,
            "mean",
          ),
        ]),
        curves(
          "Slowest nodes, p99 of ADD",
          [query(`topk(5, ${quantile(0.99, ["linkerd_cni_plugin_seconds", ADD], RATE, NODE)})`, legendOf(NODE))],
          { unit: "s" },
        ),
      ],
    },
    {
      title: "Installer",
      panels: [
        curves("Chained and ready", [
          query(`sum(${cni("chained")})`, "chained"),
          query(`sum(${cni("ready")})`, "ready"),
        ]),
        curves("Changes of the node's files, by step", [rate(cni("installs_total"), "step")], PER_SECOND),
        curves(
          "Repairs of the chain",
          [
            rate(cni("rechains_total"), "file"),
            rate(cni("config_contested"), "file, writer"),
            ...each({ "looks that failed": cni("failures_total") }),
          ],
          PER_SECOND,
        ),
        curves("Tokens for the plugin, by result", [rate(cni("token_renewals_total"), "result")], PER_SECOND),
      ],
    },
    {
      title: "Repair controller",
      panels: [
        curves("Broken pods", [
          query(`sum by (${NODE}) (${repair("pods_broken")})`, legendOf(NODE)),
          query(`count(${repair("installer_ready")} == 0)`, "nodes that wait for the installer"),
        ]),
        curves(
          "Deletions",
          each({
            deleted: repair("pods_deleted_total"),
            refused: repair("pods_delete_errors_total"),
            "no answer": repair("pods_delete_timeout_total"),
            "left alone": repair("pods_left_total"),
            "owner suspended": repair("suspensions_total"),
          }),
          PER_SECOND,
        ),
        curves(
          "Deletion and Event, p99",
          [
            p99("repair_controller_pods_delete_latency_seconds", "deletion"),
            p99("repair_controller_events_publish_latency_seconds", "Event"),
          ],
          { unit: "s" },
        ),
        curves(
          "Trouble",
          each({
            "broken watches": repair("watch_errors_total"),
            "Events refused": repair("events_publish_errors_total"),
            "Events without answer": repair("events_publish_timeouts_total"),
            "pods not looked at": repair("queue_overflow_total"),
          }),
          PER_SECOND,
        ),
      ],
    },
    {
      title: "NRI plugin",
      panels: [
        curves("Connected and synchronized", [
          query(`sum(${nri("connected")})`, "connected"),
          query(`sum(${nri("synchronized")})`, "synchronized"),
        ]),
        curves("Pods by event and outcome", [rate(nri("pods_total"), "event, outcome")], PER_SECOND),
        curves(
          "Time of a pod, p99",
          [query(quantile(0.99, ["linkerd_cni_nri_call_duration_seconds", HERE], RATE, "event"), legendOf("event"))],
          { unit: "s" },
        ),
        curves(
          "What it did",
          each({
            "mended pods": nri("mended_pods_total"),
            "connections to the runtime": nri("connections_total"),
            "API requests": nri("lookups_total"),
          }),
          PER_SECOND,
        ),
      ],
    },
  ],
};

/** The dashboard as Grafana imports it. */
export const dashboard = dashboardJson({
  ...definition,
  rows: definition.rows.map((row) => ({ ...row, panels: row.panels.map(explained) })),
});
