/** The plugin on a node that has nothing of its own: a directory that holds the installed files, as root directory, and the kernel's /proc. */
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

jest.setTimeout(60_000);

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");

/** Puts the plugin where the installer does. */
async function layOut({ executable }: PluginNode, tree: string): Promise<void> {
  const binDir = join(tree, "opt/cni/bin");
  await mkdir(binDir, { recursive: true });
  await copyFile(executable, join(binDir, "linkerd-cni"));
}

suite("a node without a C library", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let tree: string;

  beforeAll(async () => {
    api = await ApiStub.start(json(500, {}));
    plugin = await PluginNode.open(api);
    tree = join(plugin.directory, "root");
    await layOut(plugin, tree);
    await mkdir(join(tree, "proc"));
    // Of a C library of the node's own, which others than ours may be made for.
    await mkdir(join(tree, "etc"));
    await writeFile(join(tree, "etc/ld.so.preload"), "/usr/lib/libsnoopy.so\n");
    await writeFile(join(tree, "pod"), "");
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  const enter = (netns: string, env: Record<string, string>, stdin: unknown) =>
    plugin.node.run(
      "/usr/bin/env",
      [
        "unshare",
        "-m",
        "sh",
        "-c",
        `mount --bind ${netns} ${tree}/pod && mount -t proc proc ${tree}/proc && exec chroot ${tree} /opt/cni/bin/linkerd-cni`,
      ],
      {
        env: { PATH: process.env["PATH"] ?? "", ...env },
        input: JSON.stringify(stdin),
      },
    );

  it("redirects a meshed pod, whatever the caller's environment and the node's ld.so.preload hold", async () => {
    const netns = await plugin.node.pod();
    const annotations = { "linkerd.io/proxy-version": "x", "linkerd.io/created-by": "linkerd/proxy-injector x" };
    const stdin = {
      ...config,
      "pod-lookup": "annotations",
      runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations },
    };
    const env = plugin.environment("/pod", { LD_LIBRARY_PATH: "/nowhere" });
    const { status, stdout, stderr } = await enter(netns, env, stdin);
    expect([status, stderr]).toEqual([0, "linkerd-cni: info: redirected, by native\n"]);
    expect(JSON.parse(stdout)).toEqual(prevResult);
    expect(plugin.node.within(netns, "nft", ["list", "ruleset"]).match(/redirect to/g)).toHaveLength(2);
  });

  it("answers VERSION", async () => {
    const { status, stdout } = await enter(await plugin.node.pod(), { CNI_COMMAND: "VERSION" }, "");
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toHaveProperty("supportedVersions");
  });
});
