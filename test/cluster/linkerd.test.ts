/** Linkerd's own getting started, from an empty cluster to the same cluster again: its control plane and proxy with our chart. */
import { suite } from "../support/requirements";
import { isFull } from "../support/rounds";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { PROGRAMS_IMAGE } from "./images";
import { Linkerd, lacksLinkerd } from "./linkerd";
import { Multus, OPERATOR } from "./multus";
import { NriPlugin } from "./nri";
import { namespace, type Pod, pod } from "./pods";
import type { RuntimeName } from "./runtimes";
import { startServices } from "./services";
import { clusterSuite, lacks, type TestCluster } from "./suite";

const SHOP = "shop";
const [PORT, SKIPPED] = [8080, 9090];
const APP = { app: "web" };
const IDENTITY = `default.${SHOP}.serviceaccount.identity.linkerd.cluster.local`;
const INJECT = { "linkerd.io/inject": "enabled" };
const PASSED = "Status check results are √";

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: SHOP },
  spec: {
    selector: { matchLabels: APP },
    template: {
      metadata: { labels: APP, annotations: { "config.linkerd.io/skip-inbound-ports": String(SKIPPED) } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "app",
            image: PROGRAMS_IMAGE,
            args: ["web", String(PORT), String(SKIPPED)],
            // On the port that bypasses the proxy, which therefore does not count its requests.
            readinessProbe: { httpGet: { port: SKIPPED }, periodSeconds: 1 },
          },
        ],
      },
    },
  },
};

/** Admits only meshed clients to the application. */
const POLICY = [
  {
    apiVersion: "policy.linkerd.io/v1beta3",
    kind: "Server",
    metadata: { name: "web", namespace: SHOP },
    spec: { podSelector: { matchLabels: APP }, port: PORT, proxyProtocol: "HTTP/1" },
  },
  {
    apiVersion: "policy.linkerd.io/v1alpha1",
    kind: "MeshTLSAuthentication",
    metadata: { name: "meshed", namespace: SHOP },
    spec: { identities: ["*"] },
  },
  {
    apiVersion: "policy.linkerd.io/v1alpha1",
    kind: "AuthorizationPolicy",
    metadata: { name: "web", namespace: SHOP },
    spec: {
      targetRef: { group: "policy.linkerd.io", kind: "Server", name: "web" },
      requiredAuthenticationRefs: [{ group: "policy.linkerd.io", kind: "MeshTLSAuthentication", name: "meshed" }],
    },
  },
];

/** A pod with an init container that sends a request as a user, once. */
function withInitContainer(name: string, proxy: "classic" | "native", uid: number, url: string) {
  const isNative = proxy === "native";
  const annotations = {
    ...INJECT,
    "config.linkerd.io/proxy-enable-native-sidecar": String(isNative),
    // The image has no linkerd-await.
    ...(isNative ? {} : { "config.linkerd.io/proxy-await": "disabled" }),
  };
  const object = pod(name, { namespace: SHOP, annotations });
  const init = { name: "init", image: PROGRAMS_IMAGE, args: ["get", url], securityContext: { runAsUser: uid } };
  return { ...object, spec: { ...object.spec, restartPolicy: "Never", initContainers: [init] } };
}

/** A runtime, and how our plugin is called there. */
interface Setup {
  readonly runtime: RuntimeName;
  /** Options of our chart. */
  readonly options?: readonly string[];
  /** What the node has before our chart. */
  readonly prepare?: (cluster: TestCluster) => Promise<void>;
  /** What is installed besides our chart. */
  readonly install?: (cluster: TestCluster) => Promise<void>;
  readonly uninstall?: (cluster: TestCluster) => Promise<unknown>;
  /** Annotations of the namespace of meshed pods. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Files that an uninstall leaves. */
  readonly left?: readonly string[];
}

const SETUPS: Readonly<Record<string, Setup>> = {
  "a drop-in, on containerd 2.2": { runtime: "2" },
  "an edit, on containerd 1.6": { runtime: "1" },
  "a drop-in, on CRI-O": { runtime: "crio" },
  "NRI alone": {
    runtime: "2",
    options: ["--set=nri.enabled=true", "--set=chained=false"],
    install: (cluster) => new NriPlugin(cluster).rolledOut(),
  },
  "Multus' operator": {
    runtime: "1",
    options: ["--set=chained=false"],
    prepare: (cluster) => new Multus(cluster).install(),
    install: async (cluster) => void (await new Multus(cluster).installOperator()),
    uninstall: (cluster) => cluster.helm("uninstall", OPERATOR, "-n", OPERATOR, "--wait", "--timeout=180s"),
    annotations: { "linkerd.io/multus": "enabled" },
  },
  "Multus' auxiliary chain, with its daemon": {
    runtime: "1",
    options: ["--set=chaining=auxiliary"],
    prepare: (cluster) => new Multus(cluster).installAuxiliary("thick"),
    // Multus calls the plugin to end pods from before the uninstallation.
    left: ["linkerd-cni", "linkerd-cni-redirect"],
  },
};

const walk = (setup: Setup) => (cluster: TestCluster) => {
  let linkerd: Linkerd;
  let before: Record<string, string>;
  let web: Pod;
  const url = (port: number) => `http://${web.status.podIP}:${port}/`;

  /** The application's only pod. */
  async function findWeb(): Promise<void> {
    const where = [`--namespace=${SHOP}`, "--selector=app=web"];
    await until("the old pod's end", async () => {
      const { items } = await cluster.kubectl.json<{ items: Pod[] }>("get", "pods", ...where);
      [web] = items as [Pod];
      return items.length === 1;
    });
  }

  /** Sends a request to the application from a client, `unmeshed` or `meshed`. */
  async function get(client: "unmeshed" | "meshed", port: number): Promise<object> {
    const where = [`--namespace=${client === "meshed" ? SHOP : "default"}`, "--container=app"];
    return JSON.parse(await cluster.kubectl.run("exec", client, ...where, "--", "/programs", "get", url(port)));
  }

  /** How many requests a pod's proxy has counted with these labels. */
  async function requests(name: string, labels: Readonly<Record<string, string>>): Promise<number> {
    const lines = (await linkerd.metrics(name, SHOP)).split("\n");
    const wanted = Object.entries(labels).map(([label, value]) => new RegExp(`[{,]${label}="${value}"`));
    const counted = lines.filter((line) => line.startsWith("request_total{") && wanted.every((one) => one.test(line)));
    return counted.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }
  const inbound = () => ({ direction: "inbound", target_addr: `${web.status.podIP}:${PORT}` });

  beforeAll(async () => {
    await startServices(cluster);
    linkerd = await Linkerd.prepare(cluster);
    await setup.prepare?.(cluster);
    before = await cluster.directories();
  }, 1_800_000);

  test("linkerd check --pre finds the chart", async () => {
    await linkerd.installDefinitions();
    await cluster.install(...(setup.options ?? []));
    await setup.install?.(cluster);
    expect(await linkerd.check("--pre", "--linkerd-cni-enabled")).toContain(PASSED);
  });

  test("the control plane starts, and linkerd check passes", async () => {
    await linkerd.install();
    expect(await linkerd.check()).toContain(PASSED);
  });

  test("an application answers, and gets a proxy by linkerd inject", async () => {
    const { kubectl } = cluster;
    await kubectl.apply(namespace(SHOP, setup.annotations ?? {}), deployment);
    await kubectl.run("rollout", "status", "deployment/web", `--namespace=${SHOP}`, "--timeout=180s");
    await kubectl.start(pod("unmeshed"));
    await findWeb();
    expect(await get("unmeshed", PORT)).toEqual({ status: 200, client: "" });
    await linkerd.change("inject", "web", SHOP);
    await findWeb();
    await kubectl.start(pod("meshed", { namespace: SHOP, annotations: INJECT }));
  });

  test("its proxy counts the requests of a client that is not meshed, and of one that is", async () => {
    expect(await requests(web.metadata.name, inbound())).toBe(0);
    expect(await get("unmeshed", PORT)).toEqual({ status: 200, client: "" });
    expect(await get("meshed", PORT)).toEqual({ status: 200, client: IDENTITY });
    expect(await requests(web.metadata.name, { ...inbound(), no_tls_reason: "no_tls_from_remote" })).toBe(1);
    expect(await requests(web.metadata.name, { ...inbound(), tls: "true", client_id: IDENTITY })).toBe(1);
    expect(await requests("meshed", { direction: "outbound", tls: "true", server_id: IDENTITY })).toBe(1);
  });

  test("a skipped port bypasses it", async () => {
    expect(await get("unmeshed", SKIPPED)).toEqual({ status: 200, client: "" });
    expect(await linkerd.metrics(web.metadata.name, SHOP)).not.toContain(`:${SKIPPED}"`);
  });

  test("a policy refuses the client that is not meshed", async () => {
    await cluster.kubectl.apply(...POLICY);
    await until("the policy", async () => JSON.stringify(await get("unmeshed", PORT)).includes("403"));
    expect(await get("meshed", PORT)).toEqual({ status: 200, client: IDENTITY });
    expect(await get("unmeshed", SKIPPED)).toEqual({ status: 200, client: "" });
    await cluster.kubectl.run("delete", "servers.policy.linkerd.io", "web", `--namespace=${SHOP}`);
    await until("its end", async () => JSON.stringify(await get("unmeshed", PORT)).includes("200"));
  });

  test("an init container reaches the network as the proxy's user, or after a native sidecar", async () => {
    const { kubectl } = cluster;
    const wait = (name: string, condition: string) =>
      kubectl.run("wait", `pod/${name}`, `--namespace=${SHOP}`, `--for=${condition}`, "--timeout=180s");
    const answer = async (name: string) =>
      JSON.parse(await kubectl.run("logs", name, `--namespace=${SHOP}`, "--container=init"));
    await kubectl.apply(
      withInitContainer("as-proxy", "classic", 2102, url(PORT)),
      withInitContainer("as-other", "classic", 1000, url(PORT)),
      withInitContainer("native", "native", 1000, url(PORT)),
    );
    await wait("as-proxy", "condition=Ready");
    expect(await answer("as-proxy")).toEqual({ status: 200, client: "" });
    await wait("native", "condition=Ready");
    expect(await answer("native")).toEqual({ status: 200, client: IDENTITY });
    await wait("as-other", "jsonpath={.status.phase}=Failed");
    const log = await kubectl.run("logs", "as-other", `--namespace=${SHOP}`, "--container=init");
    expect(log).toContain("connection refused");
    await kubectl.run("delete", "pod", "as-other", `--namespace=${SHOP}`, "--timeout=180s");
  });

  test("linkerd check --proxy passes", async () => {
    expect(await linkerd.check("--proxy", `--namespace=${SHOP}`)).toContain(PASSED);
  });

  test("linkerd uninject takes the proxy away", async () => {
    await linkerd.change("uninject", "web", SHOP);
    await findWeb();
    expect(await get("meshed", PORT)).toEqual({ status: 200, client: "" });
    expect(await get("unmeshed", PORT)).toEqual({ status: 200, client: "" });
  });

  test("all is uninstalled, and the node's files are as before", async () => {
    await cluster.kubectl.run("delete", "namespace", SHOP, "--timeout=180s");
    await linkerd.uninstall();
    await setup.uninstall?.(cluster);
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual(setup.left ?? []);
    await cluster.kubectl.start(pod("after"));
  });
};

suite("Linkerd's getting started", lacksLinkerd() ?? lacks(), () => {
  // Each takes some minutes.
  for (const [name, setup] of Object.entries(SETUPS).slice(0, isFull ? undefined : 1)) {
    clusterSuite(name, walk(setup), setup.runtime);
  }
});
