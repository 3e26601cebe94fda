import { App, Chart } from "cdk8s";
import { parseAllDocuments } from "yaml";
import { LinkerdCni, type LinkerdCniProps, LinkerdNamespace } from "../constructs";
import { type CliRun, runIn } from "./io.testing";

const run = (
  args: readonly string[],
  files: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string>> = {},
): Promise<CliRun> => runIn({ files, env, web: { "https://example.com/values.yaml": "proxyUID: 9" } }, args);

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
  ["--platform k3s", { platform: "k3s" }],
  ["--skip-inbound-ports 0,25 --redirect-ports 0", { ignoreInboundPorts: "0,25", portsToRedirect: "0" }],
  ["--registry registry.local --cni-image ghcr.io/other/cni", { image: { name: "registry.local/cni" } }],
  ["--registry registry.local --set image.name=a/b", { image: { name: "a/b" } }],
  ["-f https://example.com/values.yaml", { proxyUID: 9 }],
  ["--context c --kubeconfig k --as me --as-group a --as-group b -L linkerd --api-addr a:1 --verbose", {}],
  ["--use-wait-flag=false", { useWaitFlag: false }],
  ["--use-wait-flag=T --proxy-uid 7", { useWaitFlag: true, proxyUID: 7 }],
  ["--values values.yaml,dates.yaml", { proxyUID: 7, tolerations: [], podLabels: { since: "2026-01-02" } }],
  ["--registry registry.local:5000/a_b", { image: { name: "registry.local:5000/a_b/linkerd-cni" } }],
  ["--set podLabels.team=mesh,privileged=true", { podLabels: { team: "mesh" }, privileged: true }],
  ["--set-string image.version=2", { image: { version: "2" } }],
  ["--set-file podAnnotations.note=note.txt", { podAnnotations: { note: "from a file" } }],
  ["--set-file podAnnotations.note=https://example.com/values.yaml", { podAnnotations: { note: "proxyUID: 9" } }],
  ["--values values.yaml", { proxyUID: 7, tolerations: [] }],
  ["--proxy-uid 5 -f - --set proxyGID=6", { proxyUID: 8, proxyGID: 6 }],
  ["--set nodeAffinity=null --ignore-cluster", {}],
  ["--set podLabels.a=null,podLabels.b=x", { podLabels: { b: "x" } }],
  ["--set tolerations=null,resources=null,logLevel=null", {}],
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

test.each([
  [["--linkerd-version", "stable 2"], {}, '--linkerd-version: "stable 2"'],
  [["--registry", "reg$istry"], {}, '--registry: "reg$istry"'],
  [[], { LINKERD_DOCKER_REGISTRY: "a b" }, 'LINKERD_DOCKER_REGISTRY: "a b"'],
])("install-cni %j with %j is refused, as by linkerd's", async (args, env, named) => {
  const { code, out, err } = await run(["install-cni", ...args], {}, env);
  expect([code, out, err]).toEqual([1, "", expect.stringContaining(`${named} is no part of an image's name`)]);
});

test("--cni-namespace is the namespace of everything", async () => {
  const { out } = await run(["install-cni", "--cni-namespace", "mesh"]);
  expect(documents(out)).toEqual(expected({}, "mesh"));
});

test("--output json is a list that kubectl reads", async () => {
  const { out } = await run(["install-cni", "-o", "json"]);
  expect(JSON.parse(out)).toEqual({ apiVersion: "v1", kind: "List", items: expected({}) });
});

/** Failing command lines and their messages. */
const refused: readonly (readonly [string, string])[] = [
  ["--cni-log-level loud", 'l5d-cni: logLevel: "loud" is not one of trace, debug, info, warn, error'],
  ["--inbound-port 0", 'l5d-cni: inboundProxyPort: "0" is less than 1\n'],
  ["--skip-inbound-ports 200-100", "200-100, which is not a port or a range low-high between 0 and 65535"],
  ["--cni-image cr.l5d.io/linkerd/cni-plugin", "is the image of linkerd's own chart"],
  ["--proxy-uid 0", 'proxyUID: "0" is less than 1'],
  ["-f https://example.com/none.yaml", "https://example.com/none.yaml: status 404"],
  ["--set-file a=https://example.com/none.yaml", "https://example.com/none.yaml: status 404"],
  ["--platform gkee", 'platform: "gkee" is not one of'],
  ["--set image.nam=x", "did you mean image.name?"],
  ["--set a", '"a" is not an assignment: write name=value'],
  ["--values missing.yaml", "no file missing.yaml"],
  ["--values list.yaml", "list.yaml is not a map of values"],
  ["--cni-namespace Mesh", 'l5d-cni: namespace: "Mesh" is not a name for one'],
  ["--inbond-port 1", "Did you mean --inbound-port?"],
  ["--output xml", "Allowed choices are yaml, json"],
];

test.each(refused)("install-cni %s fails, and nothing is printed", async (line, message) => {
  const { code, out, err } = await run(["install-cni", ...line.split(" ")], { "list.yaml": "- a\n" });
  expect(code).toBe(1);
  expect(out).toBe("");
  expect(err).toContain(message);
});

/** Values that the chart does not have, with the notes on standard error. */
test.each([
  ["--set inbondProxyPort=1", "l5d-cni: the chart has no value inbondProxyPort: did you mean inboundProxyPort?\n"],
  ["-f shared.yaml", "l5d-cni: the chart has no value postgresql, which is ignored\n"],
  ["--set cniPluginVersion=v1", "l5d-cni: the value cniPluginVersion is ignored: image.version is used\n"],
  ["--set partials=null,replicas=null,global.a=b,tags.a=true,enabled=true", ""],
])("install-cni %s prints a note, and installs", async (line, note) => {
  const { code, out, err } = await run(["install-cni", ...line.split(" ")], {
    "shared.yaml": "postgresql: {enabled: true}\n",
  });
  expect([code, err]).toEqual([0, note]);
  expect(documents(out)).toEqual(expected({}));
});

test("a boolean flag with another text is refused", async () => {
  const { code, out, err } = await run(["install-cni", "--use-wait-flag=maybe"]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain('--use-wait-flag: "maybe" is not true or false');
});

test("several problems are one line each, the same one once", async () => {
  const { err } = await run(["install-cni", "--proxy-uid=0", "--inbound-port=0", "--cni-namespace=Mesh"]);
  expect(err.match(/^l5d-cni: \w+/gm)).toEqual([
    "l5d-cni: namespace",
    "l5d-cni: inboundProxyPort",
    "l5d-cni: proxyUID",
  ]);
});

test.each(["install-cni", "uninstall-cni", "check", "explain", "report"])(
  "help of %s has examples",
  async (command) => {
    const { out } = await run([command, "--help"]);
    expect(out).toContain(`Examples:\n  # `);
    expect(out).toContain(`  l5d-cni ${command}`);
  },
);

test("-n is the namespace of pods, as for kubectl, and nothing else", async () => {
  for (const command of ["install-cni", "uninstall-cni", "check", "report"]) {
    const { code, err } = await run([command, "-n", "a"]);
    expect([code, err]).toEqual([1, expect.stringContaining("unknown option '-n'")]);
  }
});

test("as a plugin of kubectl it has kubectl's name in its help", async () => {
  const help = await runIn({ name: "kubectl-l5d_cni" }, ["check", "--help"]);
  expect(help.out).toContain("Usage: kubectl l5d-cni check");
  expect(help.out).toContain("  kubectl l5d-cni check --wait 2m");
});

describe("as an extension of linkerd's command", () => {
  const name = "linkerd-cni";
  test("it says that linkerd check runs its checks", async () => {
    const { code, out } = await runIn({ name }, ["_extension-metadata"]);
    expect([code, JSON.parse(out)]).toEqual([0, { name, checks: "always" }]);
    const help = await runIn({ name }, ["check", "--help"]);
    expect(help.out).toContain("Usage: linkerd cni check");
  });

  test("it takes the flags that linkerd passes on, and passes groups to kubectl", async () => {
    const asked: (readonly string[])[] = [];
    const programs = {
      kubectl: (args: readonly string[]) => {
        asked.push(args);
        return { code: 1, out: "", err: "The connection to the server was refused" };
      },
    };
    const flags = ["--as-group=[a,b]", "--as=me", "--api-addr=a:1", "--linkerd-namespace=l", "--namespace=n"];
    const more = ["--verbose=false", "--proxy=true", "--wait=1s", "--output=json"];
    const { err } = await runIn({ name, programs }, ["check", ...flags, ...more]);
    expect(err).toBe("");
    expect(asked[0]?.slice(0, 3)).toEqual(["--as=me", "--as-group=a", "--as-group=b"]);
    const none = await runIn({ name, programs }, ["check", "--as-group=[]", "--output=json"]);
    expect(none.err).toBe("");
    expect(asked.at(-1)?.some((word) => word.startsWith("--as-group"))).toBe(false);
  });
});
