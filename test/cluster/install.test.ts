import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "../../build/paths";
import { PLATFORMS, type PlatformName } from "../../constructs/platforms";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { listing, moveCniDirectories } from "./directories";
import { onDisk } from "./paths";
import { pod } from "./pods";
import { clusterSuite } from "./suite";

/** The proxy's answer to a redirected connection, and the application's answer to one that was not. */
const outbound = (original: string) => ({ port: 4140, original });
const inbound = (original: string) => ({ port: 4143, original });
const served = (port: number) => ({ served: port });

clusterSuite("the chart installed by helm, on the distribution's containerd", (cluster) => {
  let before: Record<string, string>;
  let server: string;
  let apiLike: string;
  let meshed: string;

  beforeAll(async () => {
    before = await cluster.directories();
    // Less memory than the documents recommend.
    await cluster.install("--set=resources.memory.limit=32Mi");
    [server, apiLike, meshed] = (await cluster.kubectl.start(
      pod("server"),
      pod("api-like", { args: ["serve", "6443"] }),
      pod("meshed", { proxy: "sidecar" }),
    )) as [string, string, string];
  });

  test("the node's chain ends in the plugin once the installer is ready", async () => {
    expect(await cluster.chain()).toEqual(["bridge", "portmap", "linkerd-cni"]);
  });

  test("everything that `linkerd check --pre --linkerd-cni-enabled` looks for exists", async () => {
    const { kubectl } = cluster;
    type Item = { kind: string; metadata: { name: string; namespace?: string } };
    const kinds = "configmaps,serviceaccounts,daemonsets,clusterroles,clusterrolebindings";
    const where = ["--namespace=linkerd-cni", "--selector=linkerd.io/cni-resource=true"];
    const { items } = await kubectl.json<{ items: Item[] }>("get", kinds, ...where);
    expect(items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
      expect.arrayContaining([
        "ConfigMap linkerd-cni-config",
        "ServiceAccount linkerd-cni",
        "ClusterRole linkerd-cni",
        "ClusterRoleBinding linkerd-cni",
        "DaemonSet linkerd-cni",
      ]),
    );
    type DaemonSet = { status: { desiredNumberScheduled: number; numberReady: number } };
    const { status } = await kubectl.json<DaemonSet>("get", "daemonset/linkerd-cni", "--namespace=linkerd-cni");
    expect(status).toMatchObject({ desiredNumberScheduled: 1, numberReady: 1 });
  });

  test("the container runtime passes annotations to the plugin: a pod that is not meshed costs no request", async () => {
    const log = await cluster.kubectl.run("logs", "--namespace=linkerd-cni", "daemonset/linkerd-cni");
    expect(log).toMatch(/containerd:\/\/\S+ passes pod annotations/);
    expect(await cluster.additions("default/server")).toMatchObject([{ decision: "skip", requests: 0 }]);
    const [redirected] = await cluster.additions("default/meshed");
    expect(redirected).toMatchObject({ decision: "redirect" });
    expect([1, 2]).toContain(redirected?.requests);
  });

  test("a meshed pod is redirected both ways; its proxy's own connections are not", async () => {
    const { kubectl } = cluster;
    expect(await kubectl.dial("meshed", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
    expect(await kubectl.dial("server", `${meshed}:8080`)).toEqual(inbound(`${meshed}:8080`));
    expect(await kubectl.dial("meshed", `${server}:8080`, { container: "linkerd-proxy" })).toEqual(served(8080));
    expect(await kubectl.dial("meshed", "127.0.0.1:8080")).toEqual(served(8080));
  });

  test("a native sidecar is redirected as well; init containers go through it, unless they run as its user", async () => {
    const { kubectl } = cluster;
    const address = `${server}:8080`;
    const dialers = { "as-proxy": { uid: 2102, address }, "as-root": { uid: 0, address } };
    const [native] = await kubectl.start(pod("native", { proxy: "native", dialers }));
    const log = async (name: string) => JSON.parse(await kubectl.run("logs", "native", `--container=${name}`));
    expect(await log("as-proxy")).toEqual(served(8080));
    expect(await log("as-root")).toEqual(outbound(address));
    expect(await kubectl.dial("server", `${native}:8080`)).toEqual(inbound(`${native}:8080`));
  });

  test("an init container that runs before the proxy reaches the network only as the proxy's user", async () => {
    const address = `${server}:8080`;
    await cluster.kubectl.start(pod("early", { proxy: "sidecar", dialers: { dialer: { uid: 2102, address } } }));
    expect(JSON.parse(await cluster.kubectl.run("logs", "early", "--container=dialer"))).toEqual(served(8080));
    await cluster.kubectl.apply(pod("caught", { proxy: "sidecar", dialers: { dialer: { uid: 0, address } } }));
    const log = () => cluster.kubectl.run("logs", "caught", "--container=dialer").catch(() => "");
    await until("the connection of root's init container to be refused", async () =>
      (await log()).includes("connection refused"),
    );
  });

  test("a control-plane pod reaches the API server's ports directly", async () => {
    const labels = { "linkerd.io/control-plane-component": "destination" };
    await cluster.kubectl.start(pod("control-plane", { proxy: "sidecar", labels }));
    expect(await cluster.kubectl.dial("control-plane", `${apiLike}:6443`)).toEqual(served(6443));
    expect(await cluster.kubectl.dial("control-plane", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
  });

  test("a malformed annotation keeps its pod from starting, and the message names it", async () => {
    const annotations = { "config.linkerd.io/skip-inbound-ports": "8080,nonsense" };
    await cluster.kubectl.apply(pod("malformed", { proxy: "sidecar", annotations }));
    let events = "";
    await until("the event that names the annotation", async () => {
      events = await cluster.kubectl.run("events", "--for=pod/malformed");
      return events.includes("skip-inbound-ports");
    });
    expect(events).toContain("nonsense");
    await cluster.kubectl.stop("malformed");
  });

  test("a pod in the node's network starts, and the node itself has no redirect", async () => {
    await cluster.kubectl.start(pod("host", { hostNetwork: true, proxy: "sidecar" }));
    expect((await cluster.machine.run(["nft", "list", "tables"])).trim()).toBe("table ip cluster");
  });

  test("static pods start and stop; one that is meshed is redirected", async () => {
    const { kubectl } = cluster;
    const manifests = onDisk("/etc/kubernetes/manifests");
    await mkdir(manifests, { recursive: true });
    const pods = [pod("static"), pod("static-meshed", { proxy: "sidecar" })];
    const files = pods.map(({ metadata }) => join(manifests, `${metadata.name}.json`));
    await Promise.all(pods.map((each, index) => writeFile(files[index] ?? "", JSON.stringify(each))));
    const names = pods.map(({ metadata }) => `${metadata.name}-node`);
    await until("the static pods", () => kubectl.run("get", "pods", ...names).then(Boolean, () => false));
    const [plain, meshed] = (await Promise.all(names.map((name) => kubectl.ready(name)))) as [string, string];
    expect(await kubectl.dial("server", `${plain}:8080`)).toEqual(served(8080));
    expect(await kubectl.dial("server", `${meshed}:8080`)).toEqual(inbound(`${meshed}:8080`));
    expect(await kubectl.dial("static-meshed-node", `${server}:8080`)).toEqual(outbound(`${server}:8080`));
    await Promise.all(files.map((file) => rm(file)));
    await kubectl.run("wait", "pods", ...names, "--for=delete", "--timeout=180s");
  });

  test("helm uninstall puts every byte back; new pods start, old pods stop", async () => {
    expect(await cluster.restarts()).toEqual([0]);
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual([]);
    const [late] = await cluster.kubectl.start(pod("late", { proxy: "sidecar" }));
    expect(await cluster.kubectl.dial("server", `${late}:8080`)).toEqual(served(8080));
    await cluster.kubectl.run("delete", "pods", "--all", "--timeout=180s");
    const { items } = await cluster.kubectl.json<{ items: object[] }>("get", "pods");
    expect(items).toEqual([]);
  });
});

clusterSuite("a node whose CNI directories are not the usual ones", (cluster) => {
  beforeAll(() => cluster.kubectl.start(pod("client")));

  test.each(["k3s", "openshift"])("the chart with the values for %s", async (name) => {
    const { machine, kubectl } = cluster;
    const values = join("examples", `${name}-values.yaml`);
    const { platform } = parse(await readFile(join(root, values), "utf8")) as { platform: PlatformName };
    const { destCNIBinDir, destCNINetDir } = PLATFORMS[platform];
    await moveCniDirectories(machine, destCNIBinDir, destCNINetDir);
    const contents = async () => [await listing(machine, destCNIBinDir), await listing(machine, destCNINetDir)];
    const before = await contents();
    // There is no Multus here with an auxiliary chain.
    await cluster.install("--values", values, "--set=chaining=edit");
    const [address] = await kubectl.start(pod(`meshed-${name}`, { proxy: "sidecar" }));
    expect(await kubectl.dial("client", `${address}:8080`)).toEqual(inbound(`${address}:8080`));
    await cluster.uninstall();
    expect(await contents()).toEqual(before);
    await kubectl.stop(`meshed-${name}`);
    expect(await cluster.directories()).toEqual({});
  });
});
