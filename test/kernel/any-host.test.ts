/** The plugin on a node that has nothing of its own: a directory that holds the installed files, as root directory, and the kernel's /proc. */
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { imageFiles } from "../../build/image/contents";
import { hostArchitecture } from "../../build/runtime";
import { launcher } from "../../cni/launcher";
import { config, prevResult } from "../../plugin/protocol-cases";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";

jest.setTimeout(60_000);

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft is not installed");
const suite = missing === undefined ? describe : describe.skip;
const HOME = "/opt/cni/bin/linkerd-cni.d";

suite(`a node without a C library${missing === undefined ? "" : ` (skipped: ${missing})`}`, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let tree: string;

  beforeAll(async () => {
    api = await ApiStub.start(json(500, {}));
    plugin = await PluginNode.open(api);
    tree = join(plugin.directory, "root");
    await mkdir(join(tree, HOME), { recursive: true });
    const files = await imageFiles(hostArchitecture(), plugin.executable);
    const onDisk = files.filter((file) => "source" in file);
    const needed = onDisk.filter(({ path, source }) => source === plugin.executable || path.startsWith("/lib"));
    for (const { path, source } of needed) await copyFile(source, join(tree, HOME, basename(path)));
    const loader = needed.map(({ path }) => basename(path)).find((name) => name.startsWith("ld-linux")) ?? "";
    const bytes = launcher({
      architecture: hostArchitecture(),
      loader: join(HOME, loader),
      libraries: HOME,
      executable: join(HOME, "linkerd-cni"),
    });
    await writeFile(join(tree, "opt/cni/bin/linkerd-cni"), bytes, { mode: 0o755 });
    await mkdir(join(tree, "proc"));
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

  it("redirects a meshed pod, whatever the caller's environment holds", async () => {
    const netns = await plugin.node.pod();
    const annotations = { "linkerd.io/proxy-version": "x", "linkerd.io/created-by": "linkerd/proxy-injector x" };
    const stdin = {
      ...config,
      "pod-lookup": "annotations",
      runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations },
    };
    const env = plugin.environment("/pod", { BUN_BE_BUN: "1", BUN_JSC_useJIT: "0", LD_LIBRARY_PATH: "/nowhere" });
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
