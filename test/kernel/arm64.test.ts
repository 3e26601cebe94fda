/** The executable for arm64, built here and run by an emulator that has no netfilter netlink: so by iptables. */
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostArchitecture } from "../../build/architecture";
import { Annotation, LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { FakeRuntime } from "../../nri/runtime.testing";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { AdmissionApi } from "../support/admission";
import { type Answer, ApiStub, json } from "../support/api-server";
import { get } from "../support/http";
import { failing, meshedPod, NODE } from "../support/meshed-pod";
import { OperatorProcess } from "../support/multus";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { PodsApi } from "../support/pods-api";
import { freePort } from "../support/ports";
import { startProgram } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";
import { TestNode } from "./installer-node";

const EMULATOR = ["/usr/bin/env", "qemu-aarch64"] as const;

const LIST = '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}';
/** A token as the API server issues them; the signature does not matter here. */
const TOKEN = (() => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "system:serviceaccount:linkerd-cni:linkerd-cni", iat: now, exp: now + 3600 };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
})();

const missing =
  namespacesMissing() ??
  (hostArchitecture() === "arm64" ? "a machine that is none itself" : undefined) ??
  (hasProgram("qemu-aarch64") ? undefined : "qemu-user") ??
  (hasProgram("iptables-legacy") ? undefined : "iptables");

suite("arm64", missing, () => {
  let directory: string;
  let api: ApiStub;
  let node: TestNode;
  let plugin: PluginNode;

  const answer: Answer = (request, response) => {
    if (request.method === "POST") return json(201, { status: { token: TOKEN } })(request, response);
    const metadata = { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector x" } };
    json(200, { kind: "Pod", metadata, spec: { containers: [{ name: "linkerd-proxy" }] } })(request, response);
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "arm64-"));
    api = await ApiStub.start(answer);
    node = new TestNode({ "10-k.conflist": LIST });
    plugin = await PluginNode.open({ runDir: node.root }, "arm64", EMULATOR);
  });
  afterAll(async () => {
    await plugin.close();
    node.delete();
    api.close();
    rmSync(directory, { recursive: true });
  });

  /** How the plugin looked up in its last call. */
  const lookup = () => {
    const [last = ""] = readFileSync(join(node.root, "plugin.log"), "utf8").trimEnd().split("\n").slice(-1);
    return (JSON.parse(last) as { lookup?: string }).lookup;
  };

  it("the plugin redirects by annotations without an installer, which the program of helm test finds", async () => {
    const pod = await plugin.node.pod();
    const ip = (line: string) => plugin.node.within(pod, "ip", line.split(" "));
    ip("link add eth0 type veth peer name peer0");
    ip("addr add 10.99.0.2/24 dev eth0");
    for (const link of ["eth0", "peer0"]) ip(`link set ${link} up`);
    ip("route add default via 10.99.0.1");
    const validate = () =>
      plugin.node.run("nsenter", [`--net=${pod}`, ...EMULATOR, plugin.executable, "validate"], {
        env: {
          NODE_NAME: NODE,
          POD_NAMESPACE: "linkerd-cni",
          POD_IPS: "10.99.0.2",
          CNI_NETWORK_CONFIG: JSON.stringify(config),
        },
      });
    expect(await validate()).toMatchObject({ status: 1, stdout: expect.stringContaining("is not redirected") });
    const runtimeConfig = {
      [POD_ANNOTATIONS]: { "linkerd.io/created-by": "linkerd/proxy-injector x", "linkerd.io/proxy-version": "x" },
    };
    const { document, status, stderr } = await plugin.call(plugin.environment(pod), { ...config, runtimeConfig });
    expect([status, document, lookup()]).toEqual([0, prevResult, "annotations"]);
    expect(stderr).toContain("redirected, by legacy");
    expect(plugin.node.within(pod, "iptables-legacy-save", ["-t", "nat"])).toContain("PROXY_INIT_REDIRECT");
    expect(await validate()).toMatchObject({ status: 0, stdout: expect.stringContaining("is redirected to") });
  });

  it("the plugin refuses bad input", async () => {
    const { document, status } = await plugin.call({ CNI_COMMAND: "ADD" }, config);
    expect(document).toMatchObject({ code: 4 });
    expect(status).toBe(1);
  });

  it("the installer gets a token for the plugin, chains the node's list, looks up for the plugin, and restores the list", async () => {
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    const settings = {
      KUBERNETES_SERVICE_PORT: String(api.port),
      POD_NAMESPACE: "linkerd-cni",
      POD_NAME: "linkerd-cni-abcde",
    };
    const installer = node.startAs(EMULATOR, settings, plugin.executable);
    try {
      await until("the chain", () => node.isChained("10-k.conflist"));
      await until("look-ups", () => existsSync(join(node.root, LOOKUP_SOCKET_NAME)));
      const pod = await plugin.node.pod();
      expect(await plugin.call(plugin.environment(pod), config)).toMatchObject({ status: 0, document: prevResult });
      plugin.node.release(pod);
      expect(lookup()).toBe("installer");
      expect(await installer.stop()).toBe(0);
      expect(node.read("10-k.conflist")).toBe(LIST);
    } finally {
      await installer.stop("SIGKILL");
    }
  });

  it("the repair controller deletes a broken pod", async () => {
    const api = await PodsApi.start();
    const pod = meshedPod("cart", { status: failing });
    api.put(pod);
    writeFileSync(join(directory, "token"), "secret");
    writeFileSync(join(directory, "ca.crt"), api.server.ca ?? "");
    const child = startProgram("repair", {
      runner: EMULATOR,
      executable: plugin.executable,
      args: [`--admin-addr=127.0.0.1:${await freePort()}`, "--installer-ready="],
      env: {
        SERVICE_ACCOUNT_DIR: directory,
        KUBERNETES_SERVICE_HOST: "127.0.0.1",
        KUBERNETES_SERVICE_PORT: String(api.server.port),
        LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: NODE,
        LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-abcde",
      },
    });
    try {
      await until("the deletion", () => api.deletions.length === 1);
      expect(api.deletions[0]).toMatchObject({ name: "cart", uid: pod.metadata.uid });
    } finally {
      child.kill("SIGKILL");
      api.close();
    }
  });

  it("the NRI plugin is registered, lets a pod start that is not meshed, and refuses one whose rules it cannot set", async () => {
    const runtime = await FakeRuntime.listen(join(directory, "nri.sock"));
    const port = await freePort();
    const child = startProgram("nri", {
      runner: EMULATOR,
      executable: plugin.executable,
      isSilent: true,
      env: { NRI_SOCKET_DIR: directory, NRI_NETNS_DIR: directory, HEALTH_PORT: String(port) },
    });
    try {
      await runtime.synchronized();
      expect(runtime.registered).toEqual([expect.stringContaining("linkerd-cni")]);
      await until("it to be ready", async () => (await get(port, "/ready")).status === 200);
      symlinkSync(await plugin.node.pod(), join(directory, "netns"));
      const pod = { id: "cart", name: "cart", addresses: ["10.0.0.1"], netns: join(directory, "netns") };
      expect(await runtime.run({ ...pod, annotations: {} })).toBeUndefined();
      const annotations = { "linkerd.io/created-by": "x", "linkerd.io/proxy-version": "x" };
      // The emulator has no netfilter netlink, and the NRI plugin does not use iptables.
      expect(await runtime.run({ ...pod, annotations })).toContain("the kernel has no netfilter netlink");
      expect((await get(port, "/live")).status).toBe(200);
    } finally {
      child.kill("SIGKILL");
      await runtime.close();
    }
  });

  suite("the Multus operator", realApiMissing(), () => {
    it("writes a namespace's definition, and annotates its pods, by certificates that it makes", async () => {
      const cluster = await AdmissionApi.start();
      const port = await freePort();
      let operator: OperatorProcess | undefined;
      try {
        await cluster.cluster.installMultus();
        await cluster.cluster.configure(config);
        await cluster.namespace("shop", { [Annotation.multus]: "enabled", "linkerd.io/inject": "enabled" });
        cluster.service.ports = [port];
        const how = { runner: EMULATOR, executable: plugin.executable };
        operator = await OperatorProcess.start(cluster.cluster, "linkerd-multus-0", [`-webhook-port=${port}`], how);
        await until("the definition", async () => (await cluster.cluster.config("shop")) !== undefined);
        // Through the API server, which trusts the authority that the operator has published.
        const networks = async () =>
          (await cluster.create("shop", {}, { dryRun: true })).annotations["k8s.v1.cni.cncf.io/networks"];
        await until("a pod's network", async () => (await networks()) === "linkerd-cni");
      } finally {
        await operator?.end("SIGKILL");
        await cluster.close();
      }
    });
  });
});
