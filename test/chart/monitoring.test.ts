import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "../../constructs";
import { exposedMetrics } from "../support/metrics";
import { type Cases, promtoolSuite, testAlerts } from "./alerts";
import { byName, helmSuite, type Rendered, template } from "./helm";
import { checkMetrics, checkRules, type RuleFile, testRules } from "./promtool";

const ALL: LinkerdCniProps = {
  podMonitor: { enabled: true },
  prometheusRule: { enabled: true },
  grafanaDashboard: { enabled: true },
  repairController: { enabled: true },
  nri: { enabled: true },
};

function constructed(props: LinkerdCniProps = ALL): Readonly<Record<string, Rendered>> {
  const scope = new Chart(new App(), "chart");
  new LinkerdCni(scope, "cni", props).addHelmTest();
  return byName(scope.toJson() as Rendered[]);
}

const rulesOf = (objects: Readonly<Record<string, Rendered>>): RuleFile =>
  objects["PrometheusRule/linkerd-cni"]?.["spec"] as RuleFile;

interface Dashboard {
  readonly panels: readonly {
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

function dashboardOf(objects: Readonly<Record<string, Rendered>>): Dashboard {
  const { data } = objects["ConfigMap/linkerd-cni-dashboard"] as unknown as { data: Record<string, string> };
  return JSON.parse(data["linkerd-cni.json"] ?? "");
}

const targetsOf = ({ panels }: Dashboard) => panels.flatMap(({ targets }) => targets ?? []);

helmSuite("monitoring by the real helm", () => {
  const flags = ["podMonitor", "prometheusRule", "grafanaDashboard", "repairController", "nri"];
  const rendered = () => byName(template(...flags.flatMap((name) => ["--set", `${name}.enabled=true`])));

  test("templates of Prometheus and Grafana arrive as they are", () => {
    const [rule] = rulesOf(rendered()).groups[0]?.rules ?? [];
    expect(rule?.annotations?.["description"]).toContain("{{ $labels.node }} ({{ $labels.pod }})");
    expect(targetsOf(dashboardOf(rendered())).map(({ legendFormat }) => legendFormat)).toContain(
      "{{verb}} {{decision}}",
    );
  });
});

const NODE = 'node="n1", pod="linkerd-cni-x"';
const HERE = { node: "n1", pod: "linkerd-cni-x" };
const at = (metric: string, labels = "") => `linkerd_cni_${metric}{${labels === "" ? NODE : `${NODE}, ${labels}`}}`;
const repair = (metric: string) => at(`repair_controller_${metric}`);
const contested = at("config_contested", 'file="10-k.conflist"');
const addErrors = at("plugin_calls_total", 'verb="ADD", decision="", code="7"');
const up = (container: string) => `up{job="linkerd-cni/linkerd-cni", container="${container}", ${NODE}}`;

const nriUp = `up{job="linkerd-cni/linkerd-cni-nri", container="nri", ${NODE}}`;
const left = (outcome: string) => at("nri_pods_total", `event="synchronize", outcome="${outcome}"`);

/** So many ADDs a minute, all of a length. */
const adds = (perMinute: number, seconds: number, verb = "ADD"): Readonly<Record<string, string>> => {
  const grown = (le: string) => (Number(le.replace("+Inf", "Infinity")) >= seconds ? perMinute : 0);
  const buckets = ["0.1", "1", "2.5", "+Inf"].map((le) => [
    at("plugin_seconds_bucket", `verb="${verb}", le="${le}"`),
    `0+${grown(le)}x60`,
  ]);
  return { ...Object.fromEntries(buckets), [at("plugin_seconds_count", `verb="${verb}"`)]: `0+${perMinute}x60` };
};

const FORMER_READY = 'linkerd_cni_ready{node="n1", pod="linkerd-cni-former"}';

const cases: Cases = {
  LinkerdCNINotReady: {
    fires: { [at("ready")]: "1x5 0x20" },
    atMinute: 11,
    says: "the chain is not complete, or pods cannot be looked up.",
    quiet: {
      "ready again in between": { [at("ready")]: "1x5 0x2 1 0x20" },
      "always ready": { [at("ready")]: "1x30" },
      "the former pod of a held rollout works": {
        [at("ready")]: "0x30",
        [FORMER_READY]: "1x30",
      },
    },
  },
  LinkerdCNIRolloutHeld: {
    fires: { [at("ready")]: "1x5 0x20", [FORMER_READY]: "1x30" },
    atMinute: 11,
    says: "the new pod does not work; the former one keeps the node chained, and the rollout waits.",
    quiet: {
      "ready in between": { [at("ready")]: "1x5 0x2 1 0x20", [FORMER_READY]: "1x30" },
      "no other pod works": { [at("ready")]: "0x30", [FORMER_READY]: "0x30" },
      "the former one has gone": { [at("ready")]: "0x30", [FORMER_READY]: "1x5 stale" },
    },
  },
  LinkerdCNIDown: {
    fires: { [up("install-cni")]: "1x5 0x20" },
    atMinute: 11,
    labels: { job: "linkerd-cni/linkerd-cni", container: "install-cni" },
    says: "Prometheus gets no metrics: the chain is no longer kept up to date, and pods may wait for look-ups.",
    quiet: {
      "it answers": { [up("install-cni")]: "1x30" },
      "another container": { [up("other")]: "0x30" },
    },
  },
  LinkerdCNIConfigContested: {
    // The series begins with the third contest, so its increase is not visible.
    fires: { [contested]: "_x20 3x5" },
    atMinute: 22,
    labels: { file: "10-k.conflist" },
    says: "Another program has taken the plugin out of 10-k.conflist 3 times in 15 minutes.",
    quiet: {
      "twice only": { [contested]: "_x20 2x5" },
      "long ago": { [contested]: "100x30" },
      "a new pod counts from nothing": { [contested]: "50x18 0x10" },
    },
  },
  LinkerdCNIAddErrors: {
    fires: { [addErrors]: "_x20 7x5" },
    atMinute: 22,
    labels: { code: "7" },
    says: "7 ADD calls ended in code 7 in 15 minutes.",
    quiet: {
      "fewer than five": { [addErrors]: "_x20 4x5" },
      "calls that succeeded": { [at("plugin_calls_total", 'verb="ADD", decision="redirect", code=""')]: "0+10x30" },
      "another verb": { [at("plugin_calls_total", 'verb="CHECK", decision="", code="100"')]: "0+10x30" },
    },
  },
  LinkerdCNIAddSlow: {
    fires: adds(2, 2),
    atMinute: 40,
    says: "the slowest hundredth of ADD calls takes 2485 ms or more.",
    quiet: {
      fast: adds(2, 0.5),
      "few calls": adds(0.5, 2),
      "another verb": adds(2, 2, "STATUS"),
      "no calls": adds(0, 2),
    },
  },
  LinkerdCNIApiUnreachable: {
    fires: { [at("api_server_reachable")]: "1x5 0x20" },
    atMinute: 11,
    says: "the installer gets no answer: meshed pods that no annotation describes cannot start.",
    quiet: {
      "reached again in between": { [at("api_server_reachable")]: "1x5 0x3 1 0x20" },
      "always reached": { [at("api_server_reachable")]: "1x30" },
    },
  },
  LinkerdCNIRepairSuspended: {
    fires: { [repair("suspended_owners")]: "0x5 2x5" },
    atMinute: 6,
    says: "the pods of 2 owners keep coming back without redirect; the repair controller no longer deletes them.",
    quiet: { "none suspended": { [repair("suspended_owners")]: "0x10" } },
  },
  LinkerdCNINotRepaired: {
    fires: { [repair("pods_broken")]: "0 4x30", [repair("suspended_owners")]: "0x30" },
    atMinute: 17,
    says: "4 pods without redirect are waiting to be deleted, or no controller would replace them.",
    quiet: {
      "suspended on purpose": { [repair("pods_broken")]: "0 4x30", [repair("suspended_owners")]: "1x30" },
      "repaired meanwhile": { [repair("pods_broken")]: "0 4x10 0 4x20" },
    },
  },
  LinkerdCNINotRedirected: {
    fires: { [repair("pods_not_redirected")]: "0 1x30" },
    atMinute: 12,
    says: "meshed pods whose connections bypass the proxy: 1.",
    quiet: { none: { [repair("pods_not_redirected")]: "0x30" } },
  },
  LinkerdCNINriNotConnected: {
    fires: { [at("nri_connected")]: "1x5 0x20" },
    atMinute: 11,
    says: "the container runtime has not taken the NRI plugin, or the plugin does not answer.",
    quiet: {
      "connected again in between": { [at("nri_connected")]: "1x5 0x2 1 0x20" },
      "always connected": { [at("nri_connected")]: "1x30", [nriUp]: "1x30" },
    },
  },
  LinkerdCNIRedirectNotMended: {
    // A plugin checks running pods when it starts, so the series' increase is not visible.
    fires: { [left("edited")]: "_x20 2x5", [left("foreign")]: "_x20 5x5" },
    atMinute: 22,
    says: "the NRI plugin has left 2 running pods as they are: their rules were edited, or it could not tell what they need.",
    quiet: {
      "mended and present": { [left("redirected")]: "_x20 2x5", [left("present")]: "_x20 9x5" },
      "a pod that was refused as it started": { [at("nri_pods_total", 'event="run", outcome="refused"')]: "_x20 2x5" },
      "long ago": { [left("edited")]: "2x30" },
    },
  },
};

promtoolSuite("alerts", () => {
  const file = rulesOf(constructed());
  testAlerts(file, cases, { labels: HERE, begin: "On node n1 (linkerd-cni-x) " });

  test("thresholds come from the values", () => {
    const given = { enabled: true, notReadyMinutes: 9, contests: 7, addErrors: 8, addMilliseconds: 250 };
    const text = JSON.stringify(rulesOf(constructed({ ...ALL, prometheusRule: given })));
    for (const part of ['"for":"9m"', ">= 7", ">= 8", "> 250 and"]) expect(text).toContain(part);
  });

  test("an NRI plugin that does not answer counts as not connected", () => {
    const [rule] = file.groups
      .flatMap(({ rules }) => rules)
      .filter(({ alert }) => alert === "LinkerdCNINriNotConnected");
    const told = {
      exp_labels: { ...HERE, job: "linkerd-cni/linkerd-cni-nri", container: "nri", ...rule?.labels },
      exp_annotations: {
        ...rule?.annotations,
        description:
          "On node n1 (linkerd-cni-x) the container runtime has not taken the NRI plugin, or the plugin does not answer.",
      },
    };
    const test = { alert: "LinkerdCNINriNotConnected", series: { [nriUp]: "1x5 0x20" }, atMinute: 11, says: [told] };
    expect(testRules(file, test)).toContain("SUCCESS");
  });

  test("a missing NRI plugin is critical if nothing else redirects", () => {
    const severity = (chained: boolean) =>
      rulesOf(constructed({ ...ALL, chained }))
        .groups.flatMap(({ rules }) => rules)
        .find(({ alert }) => alert === "LinkerdCNINriNotConnected")?.labels?.["severity"];
    expect([severity(true), severity(false)]).toEqual(["warning", "critical"]);
  });

  test("parts for features that are not installed are left out", () => {
    const names = rulesOf(constructed({ prometheusRule: { enabled: true } })).groups.flatMap(({ rules }) => rules);
    expect(names.map(({ alert }) => alert)).not.toContain("LinkerdCNIDown");
    expect(names.filter(({ alert }) => alert?.startsWith("LinkerdCNIRepair"))).toEqual([]);
  });

  test("Prometheus reads what the processes expose; one name is older than its rules for names", async () => {
    const [older, ...others] = checkMetrics(await exposedMetrics());
    expect(older).toContain('linkerd_cni_config_contested counter metrics should have "_total" suffix');
    expect(others).toEqual([]);
  });

  test("Prometheus understands every query of the dashboard", () => {
    /** Values that Grafana would insert. */
    const filled = (expr: string) => expr.replaceAll("$node", ".*").replaceAll("$__rate_interval", "5m");
    const queries = targetsOf(dashboardOf(constructed())).map(({ expr }, index) => ({
      record: `panel:query:number${index}`,
      expr: filled(expr),
    }));
    expect(JSON.stringify(queries)).not.toContain("$");
    expect(checkRules({ groups: [{ name: "dashboard", rules: queries }] })).toContain(`${queries.length} rules found`);
  });
});
