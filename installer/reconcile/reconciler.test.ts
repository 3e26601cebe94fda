import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { LIST, Node, PLUGIN, SINGLE } from "./node.testing";

let node: Node;
const on = (files: Readonly<Record<string, string>>): Node => {
  node = new Node(files);
  return node;
};
afterEach(() => rmSync(node.root, { recursive: true }));

test("plugin and chain are installed in this order, and removed without a trace", async () => {
  on({ "10-k.conflist": LIST, "20-other.conflist": LIST, "99-loopback.conf": SINGLE, "10-k.conflist.bak": "x" });
  const before = node.content();
  const installer = node.installer();
  expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  expect(JSON.parse(node.read("10-k.conflist")).plugins[1].kubernetes.kubeconfig).toBe(
    "/net.d/ZZZ-linkerd-cni-kubeconfig",
  );
  expect(node.read("20-other.conflist")).toBe(LIST);
  expect(readFileSync(node.path("bin", "linkerd-cni"), "utf8")).toBe(PLUGIN);
  expect(statSync(node.path("bin", "linkerd-cni")).mode & 0o777).toBe(0o755);
  // No credential is on the node.
  for (const text of Object.values(node.content())) expect(text).not.toContain("token-1");
  const wrote = node.lines.filter((line) => line.includes(" wrote ")).map((line) => line.trim().split("/").at(-1));
  expect(wrote.filter((name) => name !== "linkerd-cni.journal")).toEqual([
    "linkerd-cni",
    "linkerd-cni-redirect",
    "10-k.conflist.linkerd-cni-original",
    "10-k.conflist",
  ]);
  await installer.remove(false);
  expect(node.content()).toEqual(before);
});

/** Makes the image's plugin write a line for each run. */
function countRuns(): () => number {
  const runs = node.path("runs");
  writeFileSync(runs, "");
  writeFileSync(node.path("image", "linkerd-cni"), `${PLUGIN}echo >>${runs}\n`);
  return () => readFileSync(runs, "utf8").length;
}

test("the plugin that was prepared is put in place without being copied or run again", async () => {
  on({ "10-k.conflist": LIST });
  const runs = countRuns();
  const installer = node.installer();
  await installer.prepare();
  expect([node.pluginFiles(), runs()]).toEqual([
    ["linkerd-cni-redirect.linkerd-cni-tmp", "linkerd-cni.linkerd-cni-tmp"],
    2,
  ]);
  const { ino } = statSync(node.path("bin", "linkerd-cni.linkerd-cni-tmp"));
  await installer.reconcile();
  expect([node.pluginFiles(), runs()]).toEqual([["linkerd-cni", "linkerd-cni-redirect"], 2]);
  expect(statSync(node.path("bin", "linkerd-cni")).ino).toBe(ino);
});

test("an installer that is stopped meanwhile leaves nothing, and one with a moved directory prepares nothing", async () => {
  on({ "10-k.conflist": LIST });
  node.makeRunDirectory();
  const installer = node.installer();
  const prepared = installer.prepare();
  await installer.leave();
  expect(node.pluginFiles()).toEqual([]);
  await prepared;
  await node.installer().reconcile();
  node.move("bin", "bin2");
  await node.installer().prepare();
  expect(readdirSync(node.path("bin2"))).toEqual([]);
});

test("a plugin that does not run is not put in place, nor anything that is to be done with it", async () => {
  on({ "10-k.conflist": LIST });
  writeFileSync(node.path("image", "linkerd-cni"), "#!/bin/sh\nexit 3\n");
  const installer = node.installer();
  await installer.prepare();
  expect((await installer.reconcile()).problem).toMatch(
    /it exits with 3 and prints nothing; .*linkerd-cni stays as it is/,
  );
  expect(node.types("10-k.conflist")).toEqual(["bridge"]);
});

test("each executable runs once before it is put in place, and again if it is changed there", async () => {
  on({ "10-k.conflist": LIST });
  const runs = countRuns();
  const installer = node.installer();
  await installer.reconcile();
  await installer.reconcile();
  expect([node.types("10-k.conflist"), runs()]).toEqual([["bridge", "linkerd-cni"], 2]);
  // The same mode: only the time of the last change tells.
  chmodSync(node.path("bin", "linkerd-cni"), 0o755);
  await installer.reconcile();
  expect(runs()).toBe(3);
});

test.each([
  ["10-k.conflist", LIST, "10-k.conflist"],
  ["10-k.conf", SINGLE, "10-k.conf.linkerd-cni.conflist"],
])("%s is restored as the same file, with its owner, mode, times and attributes", async (name, content, list) => {
  on({ [name]: content });
  const path = node.path("net.d", name);
  chmodSync(path, 0o640);
  const { ino, mode, uid, gid, mtimeMs } = statSync(path);
  const installer = node.installer();
  await installer.reconcile();
  expect(statSync(node.path("net.d", list))).toMatchObject({ mode, uid, gid });
  await installer.remove(false);
  expect(statSync(path)).toMatchObject({ ino, mode, uid, gid, mtimeMs });
});

test("a second run changes and logs nothing", async () => {
  const installer = on({ "10-k.conflist": LIST }).installer();
  await installer.reconcile();
  const [lines, inode] = [node.lines.length, statSync(node.path("net.d", "10-k.conflist")).ino];
  await installer.reconcile();
  expect(node.lines).toHaveLength(lines);
  expect(statSync(node.path("net.d", "10-k.conflist")).ino).toBe(inode);
});

test("a single plugin's file becomes a list at its place, and is restored byte for byte", async () => {
  on({ "10-k.conf": SINGLE, "10-k.conflist": LIST, "20-other.conf": SINGLE });
  const before = node.content();
  const installer = node.installer();
  expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conf.linkerd-cni.conflist") });
  expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["bridge", "linkerd-cni"]);
  expect(Object.keys(node.content())).not.toContain("net.d/10-k.conf");
  await installer.remove(false);
  expect(node.content()).toEqual(before);
});

test("the owner's new version of a file is chained again, and later restored", async () => {
  on({ "10-k.conf": SINGLE });
  const installer = node.installer();
  await installer.reconcile();
  const renewed = SINGLE.replace("bridge", "ptp");
  writeFileSync(node.path("net.d", "10-k.conf"), renewed);
  await installer.reconcile();
  expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["ptp", "linkerd-cni"]);
  await installer.remove(false);
  expect(node.content()).toEqual({ "net.d/10-k.conf": renewed });
});

test("a configuration that comes first gets the chain, and the other one is restored", async () => {
  on({ "10-k.conflist": LIST });
  const installer = node.installer();
  await installer.reconcile();
  writeFileSync(node.path("net.d", "00-multus.conf"), SINGLE);
  expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "00-multus.conf.linkerd-cni.conflist") });
  expect(node.read("10-k.conflist")).toBe(LIST);
  await installer.remove(false);
  expect(node.content()).toEqual({ "net.d/00-multus.conf": SINGLE, "net.d/10-k.conflist": LIST });
});

test("if the loopback comes first, pods get nothing else: the installer says so, and chains the next once it is first", async () => {
  on({ "05-lo.conf": '{"name":"lo","type":"loopback"}', "10-k.conflist": LIST });
  const installer = node.installer();
  const problem = `${node.path("net.d", "05-lo.conf")} comes first, so pods get only the loopback: `;
  expect(await installer.reconcile()).toEqual({ problem: expect.stringContaining(problem) });
  expect(node.read("10-k.conflist")).toBe(LIST);
  renameSync(node.path("net.d", "05-lo.conf"), node.path("net.d", "99-lo.conf"));
  expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
});

test("an incomplete file is waited for, and named once", async () => {
  on({ "10-k.conflist": "" });
  const installer = node.installer();
  expect(await installer.reconcile()).toEqual({ problem: expect.stringContaining("no valid CNI configuration") });
  await installer.reconcile();
  expect(node.lines.filter((line) => /warn: .*10-k.conflist is empty/.test(line))).toHaveLength(1);
  writeFileSync(node.path("net.d", "10-k.conflist"), LIST);
  expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
});

test("a kubeconfig that linkerd's installer left is removed once neither its plugin nor its stanza is in force", async () => {
  on({ "10-k.conflist": LIST, "ZZZ-linkerd-cni-kubeconfig": "linkerd's" });
  const installer = node.installer();
  await installer.reconcile();
  await installer.reconcile();
  expect(node.content()["net.d/ZZZ-linkerd-cni-kubeconfig"]).toBeUndefined();
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
});

/** Replaces the plugin on the node, as linkerd's installer does. */
function replacePlugin(text: string): void {
  const path = node.path("bin", "linkerd-cni");
  writeFileSync(`${path}.new`, text, { mode: 0o755 });
  renameSync(`${path}.new`, path);
}

test("a plugin that linkerd's installer puts in place of ours stays, with its kubeconfig; ours is put back if it goes", async () => {
  on({ "10-k.conflist": LIST });
  const installer = node.installer();
  await installer.reconcile();
  expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  const theirs = `${PLUGIN}# linkerd's\n`;
  const path = node.path("bin", "linkerd-cni");
  replacePlugin(theirs);
  writeFileSync(node.path("net.d", "ZZZ-linkerd-cni-kubeconfig"), "linkerd's");
  for (let look = 0; look < 3; look += 1) {
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  }
  expect(readFileSync(path, "utf8")).toBe(theirs);
  expect(node.read("ZZZ-linkerd-cni-kubeconfig")).toBe("linkerd's");
  expect(node.lines.filter((line) => line.includes("was replaced by another plugin"))).toHaveLength(1);
  // As linkerd's installer does when it ends.
  rmSync(path);
  await installer.reconcile();
  expect(readFileSync(path, "utf8")).toBe(PLUGIN);
});

test.each([
  ["does not run is replaced", false, "#!/bin/sh\nexit 1\n"],
  ["runs is replaced by the next container of the pod", true, `${PLUGIN}# linkerd's\n`],
])("a plugin in place of ours that %s", async (_, isNext, text) => {
  on({ "10-k.conflist": LIST });
  const installer = node.installer();
  await installer.reconcile();
  await installer.reconcile();
  replacePlugin(text);
  await (isNext ? node.installer() : installer).reconcile();
  expect(readFileSync(node.path("bin", "linkerd-cni"), "utf8")).toBe(PLUGIN);
});

test("a link to itself in place of the plugin is replaced", async () => {
  on({ "10-k.conflist": LIST });
  symlinkSync(node.path("bin", "linkerd-cni"), node.path("bin", "linkerd-cni"));
  expect(await node.installer().reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  expect(readFileSync(node.path("bin", "linkerd-cni"), "utf8")).toBe(PLUGIN);
});

test("without the journal, files set aside are found by their names", async () => {
  on({ "10-k.conf": SINGLE });
  const before = node.content();
  await node.installer().reconcile();
  rmSync(node.path("net.d", "linkerd-cni.journal"));
  const next = node.installer("second");
  expect(await next.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conf.linkerd-cni.conflist") });
  expect(node.read("10-k.conf.linkerd-cni-original")).toBe(SINGLE);
  await next.remove(false);
  expect(node.content()).toEqual(before);
});

test("if another program deletes our list, the original is not lost", async () => {
  on({ "10-k.conf": SINGLE });
  const before = node.content();
  const installer = node.installer();
  await installer.reconcile();
  renameSync(
    node.path("net.d", "10-k.conf.linkerd-cni.conflist"),
    node.path("net.d", "10-k.conf.linkerd-cni.conflist.bak"),
  );
  await installer.reconcile();
  expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["bridge", "linkerd-cni"]);
  rmSync(node.path("net.d", "10-k.conf.linkerd-cni.conflist"));
  rmSync(node.path("net.d", "10-k.conf.linkerd-cni.conflist.bak"));
  await installer.remove(false);
  expect(node.content()).toEqual(before);
});

test("a plugin that another agent adds to our list stays, also after the removal", async () => {
  on({ "10-k.conf": SINGLE });
  const installer = node.installer();
  await installer.reconcile();
  const list = JSON.parse(node.read("10-k.conf.linkerd-cni.conflist"));
  list.plugins.push({ type: "istio-cni" });
  writeFileSync(node.path("net.d", "10-k.conf.linkerd-cni.conflist"), JSON.stringify(list));
  await installer.reconcile();
  expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["bridge", "istio-cni", "linkerd-cni"]);
  const lines = node.lines.length;
  await installer.reconcile();
  expect(node.lines).toHaveLength(lines);
  await installer.remove(false);
  expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["bridge", "istio-cni"]);
  expect(node.read("10-k.conf.linkerd-cni-original")).toBe(SINGLE);
  const next = node.installer("second");
  expect(await next.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conf.linkerd-cni.conflist") });
  expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["bridge", "istio-cni", "linkerd-cni"]);
});

test.each([
  ["rewrites a single plugin's file", "10-k.conf", SINGLE],
  ["removes the stanza from a list", "10-k.conflist", LIST],
])("an owner that repeatedly %s is reported with that file", async (_, name, text) => {
  on({ [name]: text });
  const installer = node.installer();
  for (let round = 0; round < 3; round += 1) {
    await installer.reconcile();
    node.now += 3_000;
    writeFileSync(node.path("net.d", name), text);
  }
  await installer.reconcile();
  expect(node.lines.join("")).toContain(`another program changed ${node.path("net.d", name)} back (`);
  expect(node.lines.join("")).not.toContain("linkerd-cni-original back");
});

describe("a plugin directory that lacks another plugin of the chain", () => {
  const BOTH = LIST.replace('{"type":"bridge"}', '{"type":"bridge"}, {"type":"portmap"}');
  const lacking = {
    problem: expect.stringMatching(/bin lacks portmap, which.*: set destCNIBinDir.*multipleCNIBinDirs/),
  };

  test("nothing is chained until it is there", async () => {
    on({ "10-k.conflist": BOTH });
    rmSync(node.path("bin", "portmap"));
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual(lacking);
    expect(node.read("10-k.conflist")).toBe(BOTH);
    // k3s has links there, which lead out of what the container sees.
    symlinkSync("/opt/elsewhere/portmap", node.path("bin", "portmap"));
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  });

  test("a runtime that searches several directories is chained", async () => {
    on({ "10-k.conflist": BOTH });
    rmSync(node.path("bin", "portmap"));
    node.multipleBinDirs = true;
    expect(await node.installer().reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  });

  test.each([
    ["10-k.conflist", BOTH, "portmap", "10-k.conflist"],
    ["10-k.conf", SINGLE, "bridge", "10-k.conf.linkerd-cni.conflist"],
  ])("the chain of %s that is in force stays, for the next installer too", async (name, text, plugin, list) => {
    on({ [name]: text });
    const before = node.content();
    const first = node.installer();
    await first.reconcile();
    rmSync(node.path("bin", plugin));
    const problem = { problem: expect.stringContaining(`lacks ${plugin}`) };
    const types = node.types(list);
    expect(types.at(-1)).toBe("linkerd-cni");
    expect(await first.reconcile()).toEqual(problem);
    const second = node.installer("second");
    expect(await second.reconcile()).toEqual({
      problem: expect.stringContaining("first keeps the node"),
      againInMs: 1_000,
    });
    await first.leave();
    expect(await second.reconcile()).toEqual(problem);
    expect(node.types(list)).toEqual(types);
    await second.remove(false);
    expect(node.content()).toEqual(before);
  });

  test("a list of it that comes first is chained when the plugin is there", async () => {
    on({ "10-k.conflist": LIST });
    const installer = node.installer();
    await installer.reconcile();
    rmSync(node.path("bin", "portmap"));
    writeFileSync(node.path("net.d", "05-new.conflist"), BOTH);
    node.now += 3_000;
    expect(await installer.reconcile()).toEqual(lacking);
    expect(node.read("05-new.conflist")).toBe(BOTH);
    writeFileSync(node.path("bin", "portmap"), "");
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "05-new.conflist") });
    expect([node.read("10-k.conflist"), node.types("05-new.conflist").at(-1)]).toEqual([LIST, "linkerd-cni"]);
  });
});

describe("a broken configuration that comes first", () => {
  const broken: readonly (readonly [string, string, string])[] = [
    ["05-broken.conflist", "{", "is not valid JSON"],
    ["05-broken.conflist", '{"name":"k","plugins":[]}', '"plugins" is empty'],
    ["05-broken.conf", '{"name":"k"}', '"type" is missing'],
    ["05-broken.json", "", "is empty"],
  ];
  /** Runs twice: a half-written file gets a moment. */
  const look = async () => {
    const installer = node.installer();
    await installer.reconcile();
    node.now += 1_000;
    return { installer, status: await installer.reconcile() };
  };

  test.each(broken)("%s of %j keeps a node with containerd from being ready", async (name, text, reason) => {
    on({ [name]: text, "10-k.conflist": LIST });
    node.passesOverBroken = false;
    const { installer, status } = await look();
    expect(status.problem).toContain(`${node.path("net.d", name)} ${reason}`);
    expect(status.problem).toContain(
      "containerd does not use the files after it, and keeps the node NotReady while it cannot load it",
    );
    expect(node.lines.filter((line) => line.includes(name))).toHaveLength(1);
    expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
    rmSync(node.path("net.d", name));
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  });

  test.each([
    [true, "is empty: skipped\n"],
    [undefined, "is empty: skipped by CRI-O; containerd does not use the files after it"],
  ])("is skipped if the runtime does so, %p", async (passesOver, text) => {
    on({ "05-broken.conflist": "", "10-k.conflist": LIST });
    node.passesOverBroken = passesOver;
    expect((await look()).status).toEqual({ chain: node.path("net.d", "10-k.conflist") });
    expect(node.lines.join("")).toContain(text);
  });

  test("is neither a directory, which runtimes ignore, nor a file after the one in force", async () => {
    on({ "10-k.conflist": LIST, "20-broken.conflist": "{" });
    mkdirSync(node.path("net.d", "05-directory.conf"));
    node.passesOverBroken = false;
    expect(await node.installer().reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  });
});
