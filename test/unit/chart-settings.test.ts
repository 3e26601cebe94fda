import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { Container } from "../../cni/contract";
import { LinkerdCni, type LinkerdCniProps, LinkerdMultus, type LinkerdMultusProps } from "../../constructs";
import { readSettings as readMultus } from "../../controllers/multus/settings";
import { readSettings as readRepair } from "../../controllers/repair/settings";
import { readSettings as readInstaller } from "../../installer/settings";
import { readSettings as readNri } from "../../nri/settings";
import type { Environment } from "../../process/settings";

const guide = (name: string): string => readFileSync(join(__dirname, "..", "..", "docs", name), "utf8");

interface Spec {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}

/** All features enabled, so that the charts set everything they can. */
const cni: readonly LinkerdCniProps[] = [
  {
    chained: false,
    uninstallOnStop: "never",
    nri: { enabled: true },
    nodeTaint: { enabled: true },
    pluginLog: false,
    repairController: { enabled: true, deleteUnowned: true },
  },
  {
    healthPort: 0,
    repairController: { enabled: true },
    nri: { enabled: true },
    chaining: "auxiliary",
    multus: { auxiliaryChainDir: "/etc/cni/net.d/vendors" },
  },
];
const multus: readonly LinkerdMultusProps[] = [{}, { webhook: { certificates: "cert-manager" } }];

function containers(): readonly Spec[] {
  const chart = () => new Chart(new App(), "chart");
  const charts = [
    ...cni.map((props) => Chart.of(new LinkerdCni(chart(), "cni", props))),
    ...multus.map((props) => Chart.of(new LinkerdMultus(chart(), "multus", props))),
  ];
  const manifests = charts.flatMap((made) => made.toJson()) as {
    spec?: { template?: { spec: { containers: readonly Spec[] } } };
  }[];
  return manifests.flatMap(({ spec }) => spec?.template?.spec.containers ?? []);
}

/** Values of variables that come from fields of the pod and from the ConfigMap. */
const filledIn: Environment = {
  CNI_NETWORK_CONFIG: "{}",
  DEST_CNI_NET_DIR: "/net.d",
  DEST_CNI_BIN_DIR: "/bin",
};
/** The variables of every container. */
const ofKubelet: Environment = {
  KUBERNETES_SERVICE_HOST: "192.0.2.1",
  KUBERNETES_SERVICE_PORT: "443",
  HOSTNAME: "pod",
};

type Read = (args: readonly string[], environment: Environment) => unknown;

const programs: readonly (readonly [container: string, readSettings: Read, documents: string])[] = [
  [Container.installer, readInstaller, "installer.md"],
  [Container.repairController, readRepair, "operate.md"],
  [Container.operator, readMultus, "multus.md"],
  [Container.nri, (_, environment) => readNri({ env: (name) => environment[name] }), "nri.md"],
];
/** The NRI plugin has no command line. */
const withFlags: readonly string[] = [Container.installer, Container.repairController, Container.operator];

/** Reads the settings, and records the variables that are read. */
function readBy(read: Read, args: readonly string[], environment: Environment) {
  const variables = new Set<string>();
  const get = (target: Environment, name: string) => {
    variables.add(name);
    return target[name];
  };
  let problem = "";
  try {
    read(args, new Proxy(environment, { get } as ProxyHandler<Environment>));
  } catch (error) {
    problem = String(error);
  }
  return { variables: [...variables], problem };
}

describe.each(programs)("%s", (name, read, document) => {
  const own = containers().filter((each) => each.name === name);
  const setVariables = new Set(own.flatMap(({ env }) => env.map((each) => each.name)));
  const setFlags = new Set(own.flatMap(({ args = [] }) => args.map((each) => each.replace(/=.*/s, ""))));
  const runs = own.map(({ args = [], env }) => {
    const given = env.map((each) => [each.name, each.value ?? filledIn[each.name] ?? "some-name"]);
    return readBy(read, args, { ...ofKubelet, ...Object.fromEntries(given) });
  });
  // Some are read only if another is not set.
  const variables = [...new Set([...runs, readBy(read, [], {})].flatMap((each) => each.variables))];

  test("accepts the settings of its chart", () => {
    expect(runs).toHaveLength(2);
    expect(runs.map(({ problem }) => problem)).toEqual(["", ""]);
  });

  test("reads every variable that its chart sets", () => {
    expect([...setVariables].filter((each) => !variables.includes(each))).toEqual([]);
  });

  test("reads no variable that is neither set by its chart nor documented", () => {
    // The documents shorten the second of a pair, as in `KUBERNETES_SERVICE_HOST` and `_PORT`.
    const words = guide(document).replace(/(`KUBERNETES_SERVICE)_HOST`(?:,| and) `_PORT`/, "$1_HOST` $1_PORT`");
    expect(variables.filter((each) => !setVariables.has(each) && !words.includes(`\`${each}\``))).toEqual([]);
  });

  if (!withFlags.includes(name)) return;

  test("knows no flag that is neither set by its chart nor documented", () => {
    const { problem } = readBy(read, ["--no-such-flag=1"], {});
    const known = /known are ([^;]+)/.exec(problem)?.[1]?.split(", ") ?? [];
    expect(known).toEqual(expect.arrayContaining([...setFlags]));
    expect(known.length).toBeGreaterThan(0);
    const isDocumented = (flag: string) => new RegExp(`(?:\`|--)${flag.slice(2)}\\b`).test(guide(document));
    expect(known.filter((flag) => !setFlags.has(flag) && !isDocumented(flag))).toEqual([]);
  });
});
