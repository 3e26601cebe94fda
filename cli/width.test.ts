import { daemonSet } from "./check/cluster.testing";
import type { Ended } from "./io";
import { runIn, type World } from "./io.testing";

const said = (out: unknown): Ended => ({ code: 0, out: JSON.stringify(out), err: "" });
const refused: Ended = {
  code: 1,
  out: "",
  err: "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n",
};

const nodes = ["ip-10-0-1-17.eu-central-1.compute.internal", "ip-10-0-2-99.eu-central-1.compute.internal"].map(
  (name) => ({
    metadata: { name, labels: { "kubernetes.io/os": "linux", "eks.amazonaws.com/nodegroup": "a" } },
    status: {
      conditions: [
        { type: "Ready", status: "False", message: "container runtime network not ready: NetworkReady=false" },
      ],
      nodeInfo: {
        kubeletVersion: "v1.31.4+k3s1",
        containerRuntimeVersion: "containerd://1.7.23-k3s2",
        architecture: "amd64",
      },
    },
  }),
);

/** A cluster that answers each question with long names. @param installed whether the DaemonSet is there */
const cluster =
  (installed: boolean) =>
  (args: readonly string[]): Ended => {
    const [verb, kind, name] = args.filter((word) => !word.startsWith("-"));
    if (verb === "auth") return { code: 0, out: "yes\n", err: "" };
    if (verb === "logs") return { code: 0, out: `linkerd-cni: error: ${"a long reason ".repeat(20)}\n`, err: "" };
    if (kind === "/version") return said({ gitVersion: "v1.31.4" });
    if (kind === "daemonset" && name === "linkerd-cni") return installed ? said(daemonSet()) : said("");
    if (kind === "nodes") return said({ items: nodes });
    return name === undefined ? said({ items: [] }) : { code: 0, out: "", err: "" };
  };

const annotations = {
  "linkerd.io/proxy-version": "edge-26.7.1",
  "config.linkerd.io/skip-inbound-ports": "25,587,3306,4444,5432,6379,9300,11211,8000-8100,9000-9100,10000-10100",
  "config.linkerd.io/skip-subnets": "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fd00::/8",
  "config.linkerd.io/skip-outbound-port": "3306",
};
const pod = (name: string, port = "25") => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: `a-deployment-with-a-long-name-${name}`,
    namespace: "a-namespace-with-a-long-name",
    annotations: { ...annotations, "config.linkerd.io/skip-outbound-ports": port },
  },
  spec: {
    initContainers: [{ name: "wait-for-the-database-and-its-schema" }],
    containers: [{ name: "app", securityContext: { runAsUser: 2102 } }, { name: "linkerd-proxy" }],
  },
  status: { podIPs: [{ ip: "10.1.2.3" }, { ip: "fd00::5" }] },
});

const files = {
  "pods.json": JSON.stringify({ kind: "List", items: [pod("5d8f7c9b4-x7k2p"), pod("5d8f7c9b4-zzzzz", "3x")] }),
};

const healthy: World["programs"] = { kubectl: cluster(true) };
const empty: World["programs"] = { kubectl: cluster(false) };
const down: World["programs"] = { kubectl: () => refused };

/** Command lines, and the cluster that they find. */
const lines: readonly (readonly [string, World["programs"]])[] = [
  ...["", "install-cni", "uninstall-cni", "check", "explain", "report", "values", "version", "completion"].map(
    (command) => [`${command} --help`.trim(), {}] as const,
  ),
  ["values", {}],
  ["values nothing.of.this.name.and.of.no.other.name.either", {}],
  ["check", healthy],
  ["check", empty],
  ["check", down],
  ["check --pre", empty],
  ["check --pre --cni-namespace a-namespace-with-a-long-name", empty],
  ["explain -f pods.json", {}],
  ["explain web", down],
  ["report", healthy],
  ["report", down],
  ["version", down],
  ["uninstall-cni -o json --cni-namespace none-of-these", down],
  ["install-cni --platform gkee --proxy-uid 0 --set image.nam=x --skip-inbound-ports 200-100", {}],
  ["install-cni --platfrom k3s", {}],
];

/** A link, a command and a single word are not broken. */
const isLong = (columns: number) => (line: string) =>
  line.length > columns && !/:\/\/|^ *\S+$|^ {2}(kubectl|helm|l5d-cni) /.test(line);

describe.each([80, 120])("in %i columns", (columns) => {
  test.each(lines)("l5d-cni %s prints no longer line", async (line, programs = {}) => {
    const { out, err } = await runIn({ columns, programs, files }, line.split(" "));
    const manifests = line.startsWith("uninstall-cni -o json");
    const printed = `${manifests ? "" : out}${err}`;
    expect(printed).not.toBe("");
    expect(printed.split("\n").filter(isLong(columns))).toEqual([]);
  });
});

test("the pods of an owner that are explained alike are listed within the terminal", async () => {
  const names = Array.from({ length: 9 }, (_, index) => `5d8f7c9b4-abcd${index}`);
  const kubectl = (args: readonly string[]): Ended => {
    const [, kind, name] = args.filter((word) => !word.startsWith("-"));
    const owned = ({ metadata, ...rest }: ReturnType<typeof pod>) => ({
      ...rest,
      metadata: { ...metadata, ownerReferences: [{ uid: "1" }] },
    });
    if (kind?.startsWith("pod")) return said({ items: names.map((each) => owned(pod(each))) });
    return name === "web" ? said({ metadata: { name, uid: "1" } }) : { code: 0, out: "", err: "" };
  };
  const { out } = await runIn({ columns: 80, programs: { kubectl } }, ["explain", "deploy/web", "-n", "a"]);
  expect(out).toContain("\n  the same:");
  expect(out.split("\n").filter(isLong(80))).toEqual([]);
});
