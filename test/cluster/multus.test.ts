import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { root } from "../../build/paths";
import { NodePath } from "../../cni/contract";
import { isFull } from "../support/rounds";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { API_PORT } from "./addresses";
import { CertManager } from "./cert-manager";
import { Admissions, definition, Multus, type MultusKind, OPERATOR } from "./multus";
import { onDisk } from "./paths";
import { INJECTED, type Pod, pod } from "./pods";
import { BIN_DIR, clusterSuite, NET_DIR, type TestCluster } from "./suite";

const ENABLED = { "linkerd.io/multus": "enabled", "linkerd.io/inject": "enabled" };
const NETWORKS = "k8s.v1.cni.cncf.io/networks";

/** The proxy's answer to a redirected connection, and the application's answer to one that was not. */
const outbound = (original: string) => ({ port: 4140, original });
const inbound = (original: string) => ({ port: 4143, original });
const served = (port: number) => ({ served: port });

interface Annotated extends Pod {
  readonly metadata: Pod["metadata"] & { readonly annotations?: Readonly<Record<string, string>> };
}

interface Configuration {
  readonly webhooks: readonly [{ readonly clientConfig: { readonly caBundle: string } }];
}

clusterSuite("the Multus operator, with the real Multus", (cluster) => {
  const multus = new Multus(cluster);
  let server: string;
  let before: string;
  let failures: string[];

  const configuration = () => readFile(join(onDisk(NET_DIR), "00-multus.conf"), "utf8");
  const annotations = async (name: string, namespace = "shop") =>
    (await cluster.kubectl.json<Annotated>("get", "pod", name, `--namespace=${namespace}`)).metadata.annotations ?? {};
  const dial = (from: string, address: string, namespace = "shop") =>
    cluster.kubectl.dial(from, address, { namespace });

  beforeAll(async () => {
    await multus.install();
    before = await configuration();
    failures = await cluster.failures();
    await cluster.install("--set=chained=false");
    await multus.installOperator();
    [server = ""] = await cluster.kubectl.start(pod("server"));
    // The first time this builds Multus.
  }, 1_800_000);

  test("nothing is chained, and Multus starts pods as before", async () => {
    expect(await configuration()).toBe(before);
    expect(await multus.attachments("default", "server")).toMatchObject([{ verb: "Add", interface: "eth0" }]);
    expect(await multus.configs()).toEqual({});
  });

  test("a namespace that is annotated gets the definition, made of the plugin's configuration", async () => {
    await multus.namespace("shop", ENABLED);
    expect(await multus.defined("shop")).toMatchObject({
      name: "linkerd-cni",
      type: "linkerd-cni",
      cniVersion: expect.any(String),
      kubernetes: { kubeconfig: "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig" },
      linkerd: { "proxy-uid": 2102, "inbound-ports-to-ignore": ["4191", "4190"] },
    });
  });

  test("a meshed pod is attached by Multus and redirected both ways; one that is not meshed is left alone", async () => {
    const [meshed] = await cluster.kubectl.start(
      pod("meshed", { namespace: "shop", proxy: "sidecar" }),
      pod("plain", { namespace: "shop", annotations: { "linkerd.io/inject": "disabled" } }),
    );
    expect(await annotations("meshed")).toMatchObject({ ...ENABLED, [NETWORKS]: "linkerd-cni" });
    expect(await multus.attachments("shop", "meshed")).toMatchObject([
      { verb: "Add", interface: "eth0" },
      { verb: "Add", network: "shop/linkerd-cni(linkerd-cni)", interface: "net1" },
    ]);
    expect(await dial("meshed", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
    expect(await dial("server", `${meshed}:8080`, "default")).toEqual(inbound(`${meshed}:8080`));
    expect(await cluster.additions("shop/meshed")).toHaveLength(1);
    expect(await annotations("plain")).not.toHaveProperty([NETWORKS]);
    expect(await dial("plain", `${server}:8080`)).toEqual(served(8080));
  });

  test("existing networks of a pod stay, each with its requested interface", async () => {
    const ipam = { type: "host-local", dataDir: "/run/lan", ranges: [[{ subnet: "10.245.0.0/24" }]] };
    await cluster.kubectl.apply(definition("shop", "lan", { type: "bridge", bridge: "lan0", ipam }));
    const options = { namespace: "shop", proxy: "native", annotations: { [NETWORKS]: "lan@lan1" } } as const;
    await cluster.kubectl.start(pod("two", options));
    expect((await multus.attachments("shop", "two")).map((each) => each.interface)).toEqual(["eth0", "lan1", "net2"]);
    expect(await dial("two", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
  });

  test("a value of the plugin's chart reaches all definitions, and pods that start from then on", async () => {
    await multus.namespace("other", ENABLED);
    await multus.defined("other");
    await cluster.upgrade("--reuse-values", "--set-string=ignoreOutboundPorts=8080");
    const ignored = async () =>
      Object.values(await multus.configs()).map(
        (config) => (config["linkerd"] as Record<string, unknown>)["outbound-ports-to-ignore"],
      );
    await until("all definitions to follow", async () => (await ignored()).every((ports) => `${ports}` === "8080"));
    expect(Object.keys(await multus.configs()).sort()).toEqual(["other", "shop"]);
    await cluster.kubectl.start(pod("later", { namespace: "other", proxy: "sidecar" }));
    expect(await dial("later", `${server}:8080`, "other")).toEqual(served(8080));
  });

  test("a pod that ends leaves nothing behind in Multus", async () => {
    const before = await multus.sandboxes();
    await cluster.kubectl.run("delete", "pod", "meshed", "--namespace=shop", "--timeout=180s");
    const gone = (await multus.attachments("shop", "meshed")).filter(({ verb }) => verb === "Del");
    // The kubelet may stop a sandbox more than once.
    expect([...new Set(gone.map((each) => each.interface))].sort()).toEqual(["eth0", "net1"]);
    expect(await multus.sandboxes()).toHaveLength(before.length - 1);
    expect(await multus.errors()).toEqual([]);
    expect(await cluster.failures()).toEqual(failures);
  });

  test("a pod that is both chained and attached has the rules of one that is only attached", async () => {
    const options = { namespace: "shop", proxy: "sidecar" } as const;
    await cluster.upgrade("--reuse-values", "--set-string=ignoreOutboundPorts=");
    await until("the definition to follow", async () => {
      const { linkerd } = (await multus.configs())["shop"] as { linkerd: object };
      return !("outbound-ports-to-ignore" in linkerd);
    });
    await cluster.kubectl.start(pod("attached", options));
    await cluster.upgrade("--reuse-values", "--set=chained=true");
    const [both] = await cluster.kubectl.start(pod("both", options));
    expect(await cluster.additions("shop/attached")).toHaveLength(1);
    expect(await cluster.additions("shop/both")).toHaveLength(2);
    const rules = await multus.rules("shop", "attached");
    expect(rules).toContain("redirect to :4143");
    expect(await multus.rules("shop", "both")).toBe(rules);
    expect(await dial("both", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
    expect(await dial("server", `${both}:8080`, "default")).toEqual(inbound(`${both}:8080`));
    await cluster.upgrade("--reuse-values", "--set=chained=false");
    expect(await configuration()).toBe(before);
  });

  test("the operator is upgraded, and loses its leader, without a pod that is refused or forgotten", async () => {
    const { kubectl } = cluster;
    const webhook = () => kubectl.json<Configuration>("get", "mutatingwebhookconfiguration", OPERATOR);
    const bundle = (await webhook()).webhooks[0].clientConfig.caBundle;
    const template = pod("probe", { namespace: "shop", proxy: "sidecar" });
    const { admitted, refused } = await Admissions.during<Annotated>(kubectl, template, async () => {
      await multus.helm("upgrade", "--set=logFormat=json");
      await multus.rolledOut();
      await kubectl.run("delete", "pod", await multus.leader(), `--namespace=${OPERATOR}`, "--wait=false");
      await multus.namespace("late", ENABLED);
      await multus.defined("late");
    });
    expect(refused).toEqual([]);
    expect(admitted.length).toBeGreaterThan(0);
    expect(admitted.filter(({ metadata }) => metadata.annotations?.[NETWORKS] !== "linkerd-cni")).toEqual([]);
    expect((await webhook()).webhooks[0].clientConfig.caBundle).toBe(bundle);
  });

  test("without the operator pods start as they are", async () => {
    await cluster.helm("uninstall", OPERATOR, "-n", OPERATOR, "--wait", "--timeout=180s");
    await cluster.kubectl.start(pod("after", { namespace: "shop" }));
    expect(await annotations("after")).not.toHaveProperty([NETWORKS]);
  });

  test("the static manifests run it in a restricted namespace; applied again they find no difference", async () => {
    const kustomization = (verb: string) =>
      cluster.machine.run(["kubectl", verb, "-k", "dist/manifests/multus"], { directory: root });
    await kustomization("apply");
    await multus.rolledOut();
    await cluster.kubectl.start(pod("again", { namespace: "shop", proxy: "sidecar" }));
    expect(await annotations("again")).toMatchObject({ [NETWORKS]: "linkerd-cni" });
    expect(await kustomization("diff")).toBe("");
    await kustomization("delete");
  });

  test("a certificate of cert-manager's is served", async () => {
    const certificates = new CertManager(cluster.kubectl);
    await certificates.install();
    await multus.helm("install", "--create-namespace", "--set=webhook.certificates=cert-manager");
    await certificates.issue(OPERATOR);
    await multus.rolledOut();
    await cluster.kubectl.start(pod("issued", { namespace: "shop", proxy: "sidecar" }));
    expect(await annotations("issued")).toMatchObject({ [NETWORKS]: "linkerd-cni" });
  });
});

/** What linkerd's chart writes on a pod of its control plane: its connections to the ports of the API server are not redirected. */
const component = (name: string) =>
  pod(name, {
    namespace: "linkerd",
    proxy: "sidecar",
    validator: true,
    labels: { "linkerd.io/control-plane-component": name, "linkerd.io/control-plane-ns": "linkerd" },
    annotations: { ...INJECTED, "config.linkerd.io/skip-outbound-ports": `443,${API_PORT}` },
  });
const COMPONENTS = ["destination", "identity", "proxy-injector"];

const auxiliary = (kind: MultusKind) => (cluster: TestCluster) => {
  const multus = new Multus(cluster);
  const file = join(NodePath.auxiliaryChainDir, "99-linkerd-cni.conf");
  let before: Record<string, string>;
  let server: string;
  const dial = (from: string, address: string) => cluster.kubectl.dial(from, address);
  const inside = (...command: string[]) => cluster.machine.run(command);

  beforeAll(async () => {
    await multus.installAuxiliary(kind);
    before = await cluster.directories();
  }, 1_800_000);

  const said = (words: string) =>
    until(`the installer to say ${words}`, async () => {
      const log = await cluster.kubectl.run("logs", "--namespace=linkerd-cni", "daemonset/linkerd-cni").catch(String);
      return log.includes(words);
    });

  test("while the plugin that Multus calls first is missing, there is no file, and pods start", async () => {
    const [there, away] = [join(BIN_DIR, "passthru"), "/run/passthru"];
    await inside("mv", there, away);
    await cluster.helm(
      ...["install", "linkerd-cni", "-n", "linkerd-cni", "--create-namespace", "dist/charts/linkerd2-cni"],
      "--set=chaining=auxiliary",
    );
    await said("lacks passthru");
    expect(await inside("ls", dirname(file))).toBe("");
    [server = ""] = await cluster.kubectl.start(pod("server"));
    await inside("mv", away, there);
    await cluster.rolledOut();
  });

  test("the stanza is in the chain, and neither Multus' nor the network's own configuration is touched", async () => {
    expect(JSON.parse(await inside("cat", file)).type).toBe("linkerd-cni-redirect");
    const changed = differences(before, await cluster.directories());
    expect(changed.filter((path) => /\.(conf|conflist)$/.test(path))).toEqual([]);
  });

  test("meshed pods are redirected both ways; one that is not meshed is left alone", async () => {
    const [meshed, plain] = await cluster.kubectl.start(
      pod("meshed", { proxy: "sidecar", validator: true }),
      pod("plain"),
    );
    expect(await dial("meshed", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
    expect(await dial("server", `${meshed}:8080`)).toEqual(inbound(`${meshed}:8080`));
    expect(await dial("server", `${plain}:8080`)).toEqual(served(8080));
    expect(await cluster.additions("default/meshed")).toHaveLength(1);
  });

  test("linkerd's control plane starts, and is redirected but for the ports of the API server", async () => {
    await multus.namespace("linkerd");
    const [api, ...addresses] = await cluster.kubectl.start(
      pod("api", { args: ["serve", String(API_PORT)] }),
      ...COMPONENTS.map(component),
    );
    for (const [at, name] of COMPONENTS.entries()) {
      expect(await dial("server", `${addresses[at]}:8080`)).toEqual(inbound(`${addresses[at]}:8080`));
      const to = [`${server}:8080`, `${api}:${API_PORT}`];
      const answers = await cluster.kubectl.dialAll(name, to, { namespace: "linkerd" });
      expect(answers).toEqual([outbound(`${server}:8080`), served(API_PORT)]);
    }
  });

  test("while a file of others is half-written, Multus redirects no pod, and the node is not ready", async () => {
    const name = "half-written";
    const vendors = join(dirname(file), `50-${name}.conf`);
    await inside("sh", "-c", 'printf %s "$0" >"$1"', "{", vendors);
    await said(`${vendors} `);
    await cluster.kubectl.start(pod(name, { proxy: "sidecar" }));
    expect(await cluster.additions(`default/${name}`)).toEqual([]);
    await until("the installer not to be ready", async () => {
      type DaemonSet = { status: { numberReady: number } };
      const { status } = await cluster.kubectl.json<DaemonSet>("get", "daemonset/linkerd-cni", "-n", "linkerd-cni");
      return status.numberReady === 0;
    });
    await inside("rm", vendors);
    await cluster.rolledOut();
    await cluster.kubectl.start(pod(`${name}-later`, { proxy: "sidecar" }));
    expect(await cluster.additions(`default/${name}-later`)).toHaveLength(1);
  });

  test("no definition and no webhook is there", async () => {
    const everywhere = ["get", "net-attach-def,mutatingwebhookconfigurations", "--all-namespaces", "--output=name"];
    expect(await cluster.kubectl.run(...everywhere)).toBe("");
  });

  test("a file that is gone, as all of /run after a boot, comes back", async () => {
    await inside("rm", file);
    await until("the stanza", async () => (await inside("ls", dirname(file))).includes(basename(file)));
  });

  test("an uninstall leaves only the plugin, which Multus calls to end pods from before it", async () => {
    await cluster.kubectl.run("delete", "pod", "plain", "--timeout=180s");
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual(["linkerd-cni", "linkerd-cni-redirect"]);
    const [late] = await cluster.kubectl.start(pod("late", { proxy: "sidecar" }));
    expect(await dial("server", `${late}:8080`)).toEqual(served(8080));
    await cluster.kubectl.run("delete", "pods", "--all", "--timeout=180s");
  });
};

const AUXILIARY = "the auxiliary chain of the real Multus, without definitions, webhook and operator";
clusterSuite(`${AUXILIARY}: as a daemon`, auxiliary("thick"));
if (isFull) clusterSuite(`${AUXILIARY}: as one program`, auxiliary("thin"));
