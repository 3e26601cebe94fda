/** The executable for arm64, built here and run by an emulator that has no netfilter netlink: so by iptables. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostArchitecture } from "../../build/architecture";
import { buildPlugin } from "../../build/programs";
import { OperatorPath } from "../../cni/contract";
import { FakeRuntime } from "../../nri/runtime.testing";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { until } from "../support/controllers";
import { failing, meshedPod, NODE } from "../support/meshed-pod";
import { hasProgram, Node, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { PodsApi } from "../support/pods-api";
import { freePort } from "../support/ports";
import { startProgram } from "../support/program";
import { suite } from "../support/requirements";
import { certificateFor } from "../support/webhook";
import { TestNode } from "./installer-node";

const EMULATOR = ["/usr/bin/env", "qemu-aarch64"] as const;

jest.setTimeout(300_000);

const missing =
  namespacesMissing() ??
  (hostArchitecture() === "arm64" ? "a machine that is none itself" : undefined) ??
  (hasProgram("qemu-aarch64") ? undefined : "qemu-user") ??
  (hasProgram("iptables-legacy") ? undefined : "iptables");

suite("arm64", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;

  beforeAll(async () => {
    api = await ApiStub.start(
      json(200, {
        kind: "Pod",
        metadata: { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector x" } },
        spec: { containers: [{ name: "linkerd-proxy" }] },
      }),
    );
    plugin = await PluginNode.open(api, "arm64", EMULATOR);
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  it("asks the API server and redirects", async () => {
    const pod = await plugin.node.pod();
    const { document, status, stderr } = await plugin.call(plugin.environment(pod), config);
    expect([status, document]).toEqual([0, prevResult]);
    expect(stderr).toContain("redirected, by legacy");
    expect(plugin.node.within(pod, "iptables-legacy-save", ["-t", "nat"])).toContain("PROXY_INIT_REDIRECT");
  });

  it("refuses bad input", async () => {
    const { document, status } = await plugin.call({ CNI_COMMAND: "ADD" }, config);
    expect(document).toMatchObject({ code: 4 });
    expect(status).toBe(1);
  });
});

suite("the programs for arm64", missing, () => {
  let directory: string;
  let executable: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "arm64-"));
    executable = join(directory, "linkerd-cni");
    await buildPlugin(executable, "arm64");
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  it("the installer chains the node's list, and restores it", async () => {
    const list = '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}';
    const node = new TestNode({ "10-k.conflist": list });
    try {
      const installer = node.startAs(EMULATOR, {}, executable);
      await until("the chain", () => node.isChained("10-k.conflist"));
      expect(await installer.stop()).toBe(0);
      expect(node.read("10-k.conflist")).toBe(list);
    } finally {
      node.delete();
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
      executable,
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
    const node = await Node.open();
    const runtime = await FakeRuntime.listen(join(directory, "nri.sock"));
    const port = await freePort();
    const child = startProgram("nri", {
      runner: EMULATOR,
      executable,
      isSilent: true,
      env: { NRI_SOCKET_DIR: directory, NRI_NETNS_DIR: directory, HEALTH_PORT: String(port) },
    });
    try {
      await runtime.synchronized();
      expect(runtime.registered).toEqual([expect.stringContaining("linkerd-cni")]);
      await until("it to be ready", async () => (await fetch(`http://127.0.0.1:${port}/ready`)).status === 200);
      symlinkSync(await node.pod(), join(directory, "netns"));
      const pod = { id: "cart", name: "cart", addresses: ["10.0.0.1"], netns: join(directory, "netns") };
      expect(await runtime.run({ ...pod, annotations: {} })).toBeUndefined();
      const annotations = { "linkerd.io/created-by": "x", "linkerd.io/proxy-version": "x" };
      // The emulator has no netfilter netlink, and the NRI plugin does not use iptables.
      expect(await runtime.run({ ...pod, annotations })).toContain("the kernel has no netfilter netlink");
      expect((await fetch(`http://127.0.0.1:${port}/live`)).status).toBe(200);
    } finally {
      child.kill("SIGKILL");
      await runtime.close();
      node.close();
    }
  });

  it("the Multus operator answers a review", async () => {
    const api = await ApiStub.start((incoming, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      if (incoming.url?.includes("watch=")) response.flushHeaders();
      else response.end(JSON.stringify({ metadata: { name: "shop", resourceVersion: "1" }, items: [] }));
    });
    const { cert, key } = certificateFor("webhook");
    for (const [name, text] of Object.entries({ "tls.crt": cert, "tls.key": key, token: "secret", "ca.crt": api.ca }))
      writeFileSync(join(directory, name), text);
    const port = await freePort();
    const child = startProgram("multus", {
      runner: EMULATOR,
      executable,
      args: [
        `-webhook-port=${port}`,
        "-webhook-certificates=mounted",
        `-webhook-certificate-dir=${directory}`,
        "-leader-elect=false",
        "-metrics-bind-address=0",
        `-health-probe-bind-address=127.0.0.1:${await freePort()}`,
      ],
      env: {
        SERVICE_ACCOUNT_DIR: directory,
        KUBERNETES_SERVICE_HOST: "127.0.0.1",
        KUBERNETES_SERVICE_PORT: String(api.port),
        POD_NAMESPACE: "linkerd-multus",
        POD_NAME: "linkerd-multus-abcde",
      },
    });
    const review = JSON.stringify({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "1",
        operation: "CREATE",
        resource: { group: "", version: "v1", resource: "pods" },
        namespace: "shop",
        object: { kind: "Pod", apiVersion: "v1", metadata: { generateName: "cart-" } },
      },
    });
    const send = () =>
      new Promise<string>((resolve, reject) => {
        const headers = { "content-type": "application/json" };
        const options = { host: "127.0.0.1", port, ca: cert, path: OperatorPath.webhook, method: "POST", headers };
        const outgoing = request({ ...options, agent: false }, (response) => {
          let text = "";
          response.on("data", (chunk) => {
            text += chunk;
          });
          response.on("end", () => resolve(text));
        });
        outgoing.on("error", reject);
        outgoing.end(review);
      });
    try {
      let answer = "";
      await until("an answer", async () => {
        answer = await send().catch(() => "");
        return answer !== "";
      });
      expect(JSON.parse(answer)).toMatchObject({ response: { uid: "1", allowed: true } });
    } finally {
      child.kill("SIGKILL");
      api.close();
    }
  });
});
