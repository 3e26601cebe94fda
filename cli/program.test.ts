import { App, Chart } from "cdk8s";
import { parseAllDocuments } from "yaml";
import { LinkerdCni, type LinkerdCniProps, LinkerdNamespace } from "../constructs";
import { type Outcome, runIn } from "./io.testing";

const run = (
  args: readonly string[],
  files: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> => runIn({ files, env }, args);

const documents = (text: string): readonly unknown[] => parseAllDocuments(text).map((document) => document.toJS());

function expected(props: LinkerdCniProps, namespace = "linkerd-cni"): readonly unknown[] {
  const chart = new Chart(new App(), "chart");
  new LinkerdNamespace(chart, "namespace", { name: namespace });
  new LinkerdCni(chart, "cni", { ...props, namespace });
  return chart.toJson();
}

/** Every flag, and the props that do the same. */
const flags: readonly (readonly [string, LinkerdCniProps])[] = [
  ["--proxy-uid 2103", { proxyUID: 2103 }],
  ["--proxy-gid 2103", { proxyGID: 2103 }],
  ["--inbound-port 5143", { inboundProxyPort: 5143 }],
  ["--outbound-port 5140", { outboundProxyPort: 5140 }],
  ["--control-port 5190", { proxyControlPort: 5190 }],
  ["--admin-port 5191", { proxyAdminPort: 5191 }],
  ["--skip-inbound-ports 25,8000-8100 --skip-inbound-ports 9", { ignoreInboundPorts: "25,8000-8100,9" }],
  ["--skip-outbound-ports 3306", { ignoreOutboundPorts: "3306" }],
  ["--redirect-ports 80,443", { portsToRedirect: "80,443" }],
  ["--cni-image registry/cni", { image: { name: "registry/cni" } }],
  ["--cni-image-version 2", { image: { version: "2" } }],
  ["--linkerd-version 3", { image: { version: "3" } }],
  ["-v 3 --cni-image-version 2", { image: { version: "2" } }],
  ["--registry registry.local/", { image: { name: "registry.local/linkerd-cni" } }],
  ["--cni-log-level debug", { logLevel: "debug" }],
  ["--dest-cni-net-dir /net", { destCNINetDir: "/net" }],
  ["--dest-cni-bin-dir /bin", { destCNIBinDir: "/bin" }],
  ["--priority-class-name top", { priorityClassName: "top" }],
  ["--use-wait-flag", { useWaitFlag: true }],
  ["--use-wait-flag=false", { useWaitFlag: false }],
  ["--use-wait-flag=T --proxy-uid 7", { useWaitFlag: true, proxyUID: 7 }],
  ["--values values.yaml,dates.yaml", { proxyUID: 7, tolerations: [], podLabels: { since: "2026-01-02" } }],
  ["--registry registry.local:5000/a_b", { image: { name: "registry.local:5000/a_b/linkerd-cni" } }],
  ["--set podLabels.team=mesh,privileged=true", { podLabels: { team: "mesh" }, privileged: true }],
  ["--set-string image.version=2", { image: { version: "2" } }],
  ["--set-file podAnnotations.note=note.txt", { podAnnotations: { note: "from a file" } }],
  ["--values values.yaml", { proxyUID: 7, tolerations: [] }],
  ["--proxy-uid 5 -f - --set proxyGID=6", { proxyUID: 8, proxyGID: 6 }],
  ["--set nodeAffinity=null --ignore-cluster", {}],
  ["--set podLabels.a=null,podLabels.b=x", { podLabels: { b: "x" } }],
  ["--set tolerations=null,resources=null,logLevel=null", { tolerations: [] }],
  ["--set updateStrategy.rollingUpdate=null,updateStrategy.type=OnDelete", { updateStrategy: { type: "OnDelete" } }],
  ["-f dates.yaml", { podLabels: { since: "2026-01-02" } }],
];

const files = {
  "values.yaml": "proxyUID: 7\ntolerations: []\n",
  "dates.yaml": "podLabels: {since: 2026-01-02}\n",
  "-": "proxyUID: 8\n",
  "note.txt": "from a file",
};

test.each(flags)("install-cni %s", async (line, props) => {
  const { code, out, err } = await run(["install-cni", ...line.split(" ")], files);
  expect([code, err]).toEqual([0, ""]);
  expect(documents(out)).toEqual(expected(props));
});

test("LINKERD_DOCKER_REGISTRY overrides --registry", async () => {
  const env = { LINKERD_DOCKER_REGISTRY: "from.env" };
  const { out } = await run(["install-cni", "--registry", "from.flag"], {}, env);
  expect(documents(out)).toEqual(expected({ image: { name: "from.env/linkerd-cni" } }));
});

test("--cni-namespace is where everything goes", async () => {
  const { out } = await run(["install-cni", "--cni-namespace", "mesh"]);
  expect(documents(out)).toEqual(expected({}, "mesh"));
});

test("--output json is a list that kubectl reads", async () => {
  const { out } = await run(["install-cni", "-o", "json"]);
  expect(JSON.parse(out)).toEqual({ apiVersion: "v1", kind: "List", items: expected({}) });
});

/** Command lines that fail, and what is said then. */
const refused: readonly (readonly [string, string])[] = [
  ["--cni-log-level loud", 'logLevel: "loud" is not one of trace, debug, info, warn, error'],
  ["--inbound-port 0", 'inboundProxyPort: "0" is less than 1'],
  ["--skip-inbound-ports 200-100", "200-100, which is not a port or a range low-high between 1 and 65535"],
  ["--cni-image cr.l5d.io/linkerd/cni-plugin", "is the image of linkerd's own chart"],
  ["--proxy-uid 0", 'proxyUID: "0" is less than 1'],
  ["--set inboundPort=1", "inboundPort is not a value"],
  ["--set image.nam=x", "did you mean image.name?"],
  ["--set a", '"a" is not an assignment: write name=value'],
  ["--values missing.yaml", "no file missing.yaml"],
  ["--values list.yaml", "list.yaml is not a map of values"],
  ["--cni-namespace Mesh", 'namespace: "Mesh" is not a name for one'],
  ["--inbond-port 1", "Did you mean --inbound-port?"],
  ["--output xml", "Allowed choices are yaml, json"],
];

test.each(refused)("install-cni %s fails, and nothing is printed", async (line, message) => {
  const { code, out, err } = await run(["install-cni", ...line.split(" ")], { "list.yaml": "- a\n" });
  expect(code).toBe(1);
  expect(out).toBe("");
  expect(err).toContain(message);
});

/** Command lines with a space in an argument, and one of an odd character: linkerd's refuses them, too. */
test.each([
  [["--linkerd-version", "stable 2"], '--linkerd-version: "stable 2" is not a version'],
  [["--cni-image-version", "1 2"], '--cni-image-version: "1 2" is not a version'],
  [["--registry", "reg$istry"], '--registry: "reg$istry" is not a registry'],
  [["--skip-inbound-ports", "25, 587"], '--skip-inbound-ports: "25, 587" has a space'],
  [["--redirect-ports", "80 "], '--redirect-ports: "80 " has a space'],
  [["--use-wait-flag=maybe"], '--use-wait-flag: "maybe" is not true or false'],
])("install-cni %j is refused", async (args, message) => {
  const { code, out, err } = await run(["install-cni", ...args]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
});

test("a registry from the environment is checked, too", async () => {
  const { code, err } = await run(["install-cni"], {}, { LINKERD_DOCKER_REGISTRY: "a b" });
  expect([code, err]).toEqual([1, expect.stringContaining('LINKERD_DOCKER_REGISTRY: "a b" is not a registry')]);
});

test("values lists every value", async () => {
  const table = await run(["values"]);
  const listed = JSON.parse((await run(["values", "--output", "json"])).out) as { name: string; description: string }[];
  expect(listed.map(({ name }) => name)).toContain("repairController.resources.cpu.limit");
  for (const { name } of listed) expect(table.out).toContain(name);
});

test.each(["bash", "zsh", "fish"])("completion for %s has the commands and their flags", async (shell) => {
  const { code, out } = await run(["completion", shell]);
  expect(code).toBe(0);
  for (const word of [
    "install-cni",
    "uninstall-cni",
    "check",
    "explain",
    "report",
    "values",
    "skip-inbound-ports",
    "rules",
    "wait",
  ])
    expect(out).toContain(word);
});

test("completion for an unknown shell says which are known", async () => {
  const { code, err } = await run(["completion", "tcsh"]);
  expect([code, err]).toEqual([1, "l5d-cni: no completion for tcsh: known are bash, zsh, fish\n"]);
});
