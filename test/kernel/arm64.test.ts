/** The executable for arm64, built here and run by an emulator that has no netfilter netlink: so by iptables. */
import { hostArchitecture } from "../../build/architecture";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

jest.setTimeout(120_000);

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
    plugin = await PluginNode.open(api, "arm64", ["/usr/bin/env", "qemu-aarch64"]);
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
