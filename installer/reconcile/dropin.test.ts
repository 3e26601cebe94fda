import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { watchedDirectories } from "../state/observe";
import type { Paths } from "../state/paths";
import { LIST, Node, SINGLE } from "./node.testing";

const NAME = "10-k.conflist";
const MADE = "10-k.conf.linkerd-cni.conflist";
const READER = "containerd://2.2.9";
const FORMER = "containerd://1.7.28";

let node: Node;
const on = (files: Readonly<Record<string, string>>, runtime: string | undefined = READER): Node => {
  node = new Node(files);
  node.runtime = runtime;
  return node;
};
afterEach(() => rmSync(node.root, { recursive: true }));

const dropin = (network = "k") => node.path("net.d", network, "99-linkerd-cni.conf");
const folder = (network = "k") => node.path("net.d", network);
const inode = (name = NAME) => statSync(node.path("net.d", name)).ino;
/** The plugins that the runtime calls for a pod. */
const called = (name = NAME): readonly string[] => {
  const { name: network, plugins } = JSON.parse(node.read(name)) as { name: string; plugins: { type: string }[] };
  const files = existsSync(folder(network))
    ? readdirSync(folder(network)).filter((each) => each.endsWith(".conf"))
    : [];
  const below = files.sort().map((each) => JSON.parse(readFileSync(node.path("net.d", network, each), "utf8")));
  return [...plugins, ...below].map(({ type }: { type: string }) => type);
};

describe("with a runtime that reads drop-ins", () => {
  test("the stanza is a separate file, and the owner's file never changes, not even by an uninstall", async () => {
    on({ [NAME]: LIST });
    const [before, first] = [node.content(), inode()];
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
    expect(node.choice).toEqual({ way: "dropin", why: `${READER} reads drop-ins` });
    expect(JSON.parse(readFileSync(dropin(), "utf8"))).toEqual({
      type: "linkerd-cni-redirect",
      kubernetes: { kubeconfig: "/net.d/ZZZ-linkerd-cni-kubeconfig" },
      extends: `/net.d/${NAME}`,
    });
    expect(statSync(dropin()).mode & 0o777).toBe(0o600);
    const lines = node.lines.length;
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
    expect(node.lines.slice(lines)).toEqual([]);
    expect([node.read(NAME), inode()]).toEqual([LIST, first]);
    await installer.remove(false);
    expect([node.content(), inode(), existsSync(folder())]).toEqual([before, first, false]);
  });

  test("a folder of others and their files stay", async () => {
    on({ [NAME]: LIST });
    mkdirSync(folder());
    writeFileSync(node.path("net.d", "k", "50-tuning.conf"), '{"type":"tuning"}');
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
    expect(called()).toEqual(["bridge", "tuning", "linkerd-cni-redirect"]);
    await installer.remove(false);
    expect(readdirSync(folder())).toEqual(["50-tuning.conf"]);
  });

  test.each([
    ["that cannot be loaded", "50-broken.conf", "{", "problem", "50-broken.conf is not valid JSON"],
    ["that calls our plugin", "50-ours.conf", '{"type":"linkerd-cni"}', "log", "calls linkerd-cni, too"],
    ["that comes after ours", "99-tuning.conf", '{"type":"tuning"}', "log", "comes after 99-linkerd-cni.conf"],
  ])("a drop-in of others %s is named", async (_, name, text, where, words) => {
    on({ [NAME]: LIST });
    mkdirSync(folder());
    writeFileSync(node.path("net.d", "k", name), text);
    const { problem = "" } = await node.installer().reconcile();
    expect(where === "problem" ? problem : node.lines.join("\n")).toContain(words);
    if (where === "log") expect(problem).toBe("");
  });

  test("a subfolder is not a drop-in, because runtimes do not read it", async () => {
    on({ [NAME]: LIST });
    mkdirSync(node.path("net.d", "k", "50-old.conf"), { recursive: true });
    expect(await node.installer().reconcile()).toEqual({ chain: dropin() });
    expect(node.lines.filter((line) => line.includes("50-old"))).toEqual([]);
  });

  test("a drop-in of others that is not visible from here is a warning", async () => {
    on({ [NAME]: LIST });
    mkdirSync(folder());
    symlinkSync("/opt/vendor/tuning.conf", node.path("net.d", "k", "50-tuning.conf"));
    expect(await node.installer().reconcile()).toEqual({ chain: dropin() });
    const said = node.lines.filter((line) => line.includes("50-tuning.conf is a link to /opt/vendor/tuning.conf"));
    expect(said).toEqual([expect.stringContaining("which is not mounted here")]);
  });

  test("a link to a missing drop-in is a problem", async () => {
    on({ [NAME]: LIST });
    mkdirSync(folder());
    symlinkSync("nowhere.conf", node.path("net.d", "k", "50-tuning.conf"));
    const { problem } = await node.installer().reconcile();
    expect(problem).toContain("50-tuning.conf is a link to a file that is not there");
  });

  test("a plugin that a drop-in of others calls and that is missing keeps ours away, and leaves it in place", async () => {
    on({ [NAME]: LIST });
    mkdirSync(folder());
    writeFileSync(node.path("net.d", "k", "50-vendor.conf"), '{"type":"vendor"}');
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ problem: expect.stringContaining("bin lacks vendor, which") });
    expect(readdirSync(folder())).toEqual(["50-vendor.conf"]);
    writeFileSync(node.path("bin", "vendor"), "");
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
    rmSync(node.path("bin", "vendor"));
    expect(await installer.reconcile()).toEqual({ problem: expect.stringContaining("bin lacks vendor, which") });
    expect(called()).toEqual(["bridge", "vendor", "linkerd-cni-redirect"]);
  });

  test("its folder is removed with files left by a crash", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    writeFileSync(`${dropin()}.linkerd-cni-tmp`, "");
    node.runtime = FORMER;
    await installer.reconcile();
    await installer.reconcile();
    expect(existsSync(folder())).toBe(false);
  });

  test("while the runtime is unknown, the node's chain stays", async () => {
    on({ [NAME]: LIST });
    await node.installer().reconcile();
    node.runtime = undefined;
    expect(await node.installer().reconcile()).toEqual({ chain: dropin() });
    expect(node.choice?.way).toBe("dropin");
    expect(node.read(NAME)).toBe(LIST);
  });

  test("the network's new name has a drop-in, and the former name does not", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    writeFileSync(node.path("net.d", NAME), LIST.replace('"k"', '"next"'));
    expect(await installer.reconcile()).toEqual({ chain: dropin("next") });
    expect([called(), existsSync(folder())]).toEqual([["bridge", "linkerd-cni-redirect"], false]);
  });

  test("a new first list is chained, and the former one is not", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    writeFileSync(node.path("net.d", "05-first.conflist"), LIST.replace('"k"', '"first"'));
    expect(await installer.reconcile()).toEqual({ chain: dropin("first") });
    expect([called("05-first.conflist"), called()]).toEqual([["bridge", "linkerd-cni-redirect"], ["bridge"]]);
  });

  test("a drop-in that is changed, or removed with or without its folder, is restored", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    rmSync(folder(), { recursive: true });
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
    rmSync(dropin());
    await installer.reconcile();
    writeFileSync(dropin(), '{"type":"linkerd-cni"}');
    node.now += 60_000;
    await installer.reconcile();
    expect([called(), JSON.parse(readFileSync(dropin(), "utf8")).kubernetes]).toEqual([
      ["bridge", "linkerd-cni-redirect"],
      { kubeconfig: "/net.d/ZZZ-linkerd-cni-kubeconfig" },
    ]);
  });

  test("a drop-in that is removed repeatedly is restored at growing intervals, without a search for the program that removes it", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    const waits = new Set<number | undefined>();
    for (let round = 0; round < 20; round += 1, node.now += 100) {
      rmSync(dropin(), { force: true });
      waits.add((await installer.reconcile()).againInMs);
    }
    expect(Math.max(...[...waits].map((ms) => ms ?? 0))).toBeGreaterThan(100);
    expect(node.lines.join("\n")).not.toContain("another program changed");
  });

  test("while the owner's list is missing, its drop-in stays", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    rmSync(node.path("net.d", NAME));
    node.now += 5_000;
    const lines = node.lines.length;
    expect(await installer.reconcile()).toMatchObject({
      problem: expect.stringContaining("no valid CNI configuration"),
    });
    node.now += 5_000;
    await installer.reconcile();
    expect(existsSync(dropin())).toBe(true);
    expect(node.lines.slice(lines).filter((line) => line.includes("removed"))).toEqual([]);
    writeFileSync(node.path("net.d", NAME), LIST);
    node.now += 5_000;
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
  });

  test.each([
    ["a single plugin's file", "10-k.conf", SINGLE, "holds a single plugin", MADE],
    ["a list with only its own plugins", NAME, LIST.replace("{", '{"loadOnlyInlinedPlugins":true,'), "loadOnly", NAME],
    ["a list whose name is a path", NAME, LIST.replace('"k"', '"../k"'), "name", NAME],
  ])("%s is edited, and the reason given", async (_, name, text, why, list) => {
    on({ [name]: text });
    const before = node.content();
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", list) });
    expect(node.choice).toMatchObject({ way: "edit", why: expect.stringContaining(why) });
    expect(node.types(list).at(-1)).toBe("linkerd-cni");
    await installer.remove(false);
    expect(node.content()).toEqual(before);
  });

  test("a list that becomes a single plugin's file is edited, and never has two of ours", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    await installer.reconcile();
    rmSync(node.path("net.d", NAME));
    writeFileSync(node.path("net.d", "10-k.conf"), SINGLE);
    await installer.reconcile();
    node.now += 2_000;
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", MADE) });
    expect(called(MADE)).toEqual(["bridge", "linkerd-cni"]);
  });

  test("where a directory has our file's name, the list is edited, and an uninstall leaves it alone", async () => {
    on({ [NAME]: LIST });
    mkdirSync(dropin(), { recursive: true });
    const before = node.content();
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", NAME) });
    expect(node.choice?.why).toMatch(/^k\/99-linkerd-cni\.conf beside .* is a directory$/);
    expect(node.types(NAME)).toEqual(["bridge", "linkerd-cni"]);
    await installer.remove(false);
    expect([node.content(), statSync(dropin()).isDirectory()]).toEqual([before, true]);
  });

  test("if a link has the folder's name, the list is edited", async () => {
    on({ [NAME]: LIST });
    symlinkSync("/elsewhere", folder());
    expect(await node.installer().reconcile()).toEqual({ chain: node.path("net.d", NAME) });
    expect(node.choice?.why).toContain("is not a directory");
  });

  test("if a file has the folder's name, which keeps the runtime from loading the list, nothing is chained", async () => {
    on({ [NAME]: LIST });
    writeFileSync(folder(), "");
    const { problem } = await node.installer().reconcile();
    expect(problem).toMatch(`${NAME} has the name k, and k beside it is not a directory`);
    expect(node.read(NAME)).toBe(LIST);
    // An older runtime has no such folders.
    node.runtime = FORMER;
    expect(await node.installer().reconcile()).toEqual({ chain: node.path("net.d", NAME) });
  });

  test("CRI-O skips a list with a drop-in that it cannot load, so the next one is chained", async () => {
    on({ [NAME]: LIST, "20-l.conflist": LIST.replace('"k"', '"l"') }, "cri-o://1.34.0");
    node.passesOverBroken = true;
    mkdirSync(folder());
    writeFileSync(node.path("net.d", "k", "10-broken.conf"), "{");
    const installer = node.installer();
    await installer.reconcile();
    node.now += 2_000;
    expect(await installer.reconcile()).toEqual({ chain: dropin("l") });
    expect(node.lines.join("")).toMatch(/10-k\.conflist is not loaded: .*10-broken\.conf is not valid JSON/);
    // containerd does not skip it.
    node.runtime = READER;
    expect((await node.installer().reconcile()).problem).toContain("10-broken.conf is not valid JSON");
  });

  test("a list with all its plugins in the folder is chained there, and cannot be edited", async () => {
    on({ [NAME]: '{"name":"k"}' });
    mkdirSync(folder());
    writeFileSync(node.path("net.d", "k", "10-bridge.conf"), '{"type":"bridge"}');
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ chain: dropin() });
    node.chaining = "edit";
    const problem = expect.stringContaining(
      `${NAME} has no "plugins" to add to (chaining is edit): set chaining to auto`,
    );
    expect(await node.installer().reconcile()).toEqual({ problem });
    expect(node.read(NAME)).toBe('{"name":"k"}');
    node.runtime = FORMER;
    expect((await node.installer().reconcile()).problem).toContain(`${NAME} "plugins" is missing`);
  });
});

describe("with a runtime that should read drop-ins, but does not", () => {
  const unread = async (_folder: string, meanwhile: () => Promise<unknown>) => {
    await meanwhile();
    return false;
  };

  test("an edited list stays: a drop-in that was not tested does not replace it", async () => {
    on({ [NAME]: LIST }, FORMER);
    const installer = node.installer();
    await installer.reconcile();
    const chained = node.content();
    Object.assign(node, { runtime: READER, isOpened: unread });
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", NAME) });
    expect(node.choice?.why).toContain("did not read the folder");
    expect([node.content(), existsSync(folder())]).toEqual([chained, false]);
  });

  test("an existing drop-in that is no longer read is replaced by an edit", async () => {
    on({ [NAME]: LIST });
    await node.installer().reconcile();
    node.isOpened = unread;
    const installer = node.installer();
    for (let look = 0; look < 3; look += 1) {
      expect(await installer.reconcile()).toMatchObject({ problem: expect.stringContaining("does not read") });
    }
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", NAME) });
    expect(called()).toEqual(["bridge", "linkerd-cni"]);
  });

  test("if it later stops reading it, it has three tries again", async () => {
    on({ [NAME]: LIST });
    const installer = node.installer();
    for (const _ of ["once", "again"]) {
      let asked = 0;
      node.isOpened = async (_folder, meanwhile) => {
        await meanwhile();
        asked += 1;
        return asked === 1;
      };
      for (let look = 0; look < 3; look += 1) {
        expect(await installer.reconcile()).toMatchObject({ problem: expect.stringContaining("does not read") });
      }
      expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", NAME) });
      node.now += 60_000;
    }
  });

  test("the former installer may have opened the folder, so the test is repeated a minute later", async () => {
    on({ [NAME]: LIST });
    node.chaining = "edit";
    await node.installer().reconcile();
    node.chaining = "auto";
    const second = node.installer("second");
    expect(await second.reconcile()).toEqual({ chain: dropin() });
    node.isOpened = unread;
    node.now += 59_000;
    expect(await second.reconcile()).toEqual({ chain: dropin() });
    node.now += 1_000;
    for (let look = 0; look < 3; look += 1) {
      expect(await second.reconcile()).toMatchObject({ problem: expect.stringContaining("does not read") });
    }
    expect(await second.reconcile()).toEqual({ chain: node.path("net.d", NAME) });
  });

  test("a result confirmed after a change of installers is not tested again", async () => {
    on({ [NAME]: LIST });
    await node.installer().reconcile();
    const second = node.installer("second");
    await second.reconcile();
    node.now += 60_000;
    expect(await second.reconcile()).toEqual({ chain: dropin() });
    node.isOpened = unread;
    node.now += 3_600_000;
    expect(await second.reconcile()).toEqual({ chain: dropin() });
  });

  test("with chaining dropin this is a problem, and nothing is edited", async () => {
    on({ [NAME]: LIST });
    Object.assign(node, { chaining: "dropin", isOpened: unread });
    const { problem } = await node.installer().reconcile();
    expect(problem).toContain(`chaining is dropin, but ${READER} did not read the folder`);
    expect(node.read(NAME)).toBe(LIST);
  });
});

test("if the kernel cannot report what the runtime reads, its version decides", async () => {
  on({ [NAME]: LIST });
  node.isOpened = async () => {
    throw new Error("EMFILE");
  };
  expect(await node.installer().reconcile()).toEqual({ chain: dropin() });
});

test.each([
  ["dropin", "containerd://1.6.20", "containerd://1.6.20 does not read drop-ins (containerd 2.1 and CRI-O 1.34 do)"],
  ["auto", "containerd://1.6.20", undefined],
] as const)("chaining %s with %s", async (chaining, runtime, problem) => {
  on({ [NAME]: LIST }, runtime);
  node.chaining = chaining;
  const status = await node.installer().reconcile();
  if (problem === undefined) expect(status).toEqual({ chain: node.path("net.d", NAME) });
  else expect(status.problem).toContain(problem);
});

test.each([
  ["a single plugin's file", "10-k.conf", SINGLE, READER, MADE],
  ["a list on a node whose runtime does not read drop-ins", NAME, LIST.replace('"name"', ' "name"'), FORMER, NAME],
])("if chaining becomes dropin and is not possible, the list made from %s and its original stay", async (...row) => {
  const [, name, text, runtime, list] = row;
  on({ [name]: text }, runtime);
  const before = node.content();
  node.chaining = "edit";
  const first = node.installer();
  await first.reconcile();
  await first.leave();
  node.chaining = "dropin";
  const second = node.installer("second");
  await second.reconcile();
  node.now += 2_000;
  expect((await second.reconcile()).problem).toContain("chaining is dropin, but");
  expect(called(list)).toEqual(["bridge", "linkerd-cni"]);
  await second.remove(false);
  expect(node.content()).toEqual(before);
});

test("taking the node from an installer that edits, and giving it back, changes the way without losing the chain", async () => {
  on({ [NAME]: LIST });
  node.chaining = "edit";
  const first = node.installer("first");
  await first.reconcile();
  node.chaining = "auto";
  const second = node.installer("second");
  expect(await second.reconcile()).toEqual({ chain: dropin() });
  node.chaining = "edit";
  node.now += 60_000;
  // It finds a working node, whatever its own way would be.
  await first.reconcile();
  node.now += 60_000;
  expect((await first.reconcile()).problem).toBeUndefined();
  expect([node.read(NAME), called()]).toEqual([LIST, ["bridge", "linkerd-cni-redirect"]]);
});

test("a drop-in that was left behind is removed by the next installer, although that one does not chain", async () => {
  on({ [NAME]: LIST });
  await node.installer().reconcile();
  node.now += 60_000;
  const next = node.installer("second", false);
  expect(await next.reconcile()).toEqual({});
  expect([called(), existsSync(folder())]).toEqual([["bridge"], false]);
});

test("the folders with our drop-in are watched, even during a problem", async () => {
  on({ [NAME]: LIST });
  const at = (netDir: string, auxiliary: string) =>
    watchedDirectories({ netDir, binDir: "bin", auxiliary } as unknown as Paths).slice(2);
  const watched = () => at(node.path("net.d"), dropin("vendor"));
  mkdirSync(folder("other"));
  expect(watched()).toEqual([]);
  mkdirSync(folder("vendor"));
  mkdirSync(folder());
  writeFileSync(node.path("net.d", "k", "50-broken.conf"), "{");
  expect((await node.installer().reconcile()).problem).toBeDefined();
  expect(watched()).toEqual([folder(), folder("vendor")]);
  expect(at(node.path("absent"), node.path("absent", "x.conf"))).toEqual([]);
});

describe("in the auxiliary chain of Multus", () => {
  const auxiliary = () => node.path("vendor", "99-linkerd-cni.conf");
  const multus = (settings: object = {}) =>
    JSON.stringify({
      ...{ cniVersion: "1.0.0", name: "multus-cni-network", type: "multus-shim" },
      ...{ auxiliaryCNIChainName: "vendor", clusterNetwork: "/host/10-ovn-kubernetes.conf" },
      ...settings,
    });
  const withMultus = (settings?: object) => {
    on({ "00-multus.conf": multus(settings) });
    mkdirSync(node.path("vendor"));
    node.chaining = "auxiliary";
  };

  /** The chain is in another folder, which is the one of drop-ins for a list named vendor. */
  const inOtherFolder = () => {
    mkdirSync(folder("vendor"));
    node.auxiliaryDir = "/net.d/vendor";
    writeFileSync(node.path("net.d", "00-multus.conf"), multus({ clusterNetwork: "/host/net.d/10-ovn.conf" }));
  };
  const withOtherFolder = () => {
    withMultus();
    inOtherFolder();
  };

  test("the stanza is a file there, and the node's configuration does not change", async () => {
    withMultus();
    const before = node.content();
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ chain: auxiliary() });
    expect(JSON.parse(readFileSync(auxiliary(), "utf8")).type).toBe("linkerd-cni-redirect");
    expect(node.read("00-multus.conf")).toBe(multus());
    rmSync(auxiliary());
    expect(await installer.reconcile()).toEqual({ chain: auxiliary() });
    await installer.remove(false);
    expect([node.content(), readdirSync(node.path("vendor"))]).toEqual([
      { ...before, "bin/linkerd-cni": expect.any(String), "bin/linkerd-cni-redirect": expect.any(String) },
      [],
    ]);
  });

  test.each([
    ["is called by another path in the daemon's container", { clusterNetwork: "/entrypoint/10-ovn.conf" }],
    ["has no path to its network", { clusterNetwork: "ovn" }],
    ["is one program, in the folder itself", { type: "multus", clusterNetwork: "/10-ovn.conf" }],
  ])("Multus may have the chain if it %s", async (_, settings) => {
    withMultus(settings);
    expect(await node.installer().reconcile()).toEqual({ chain: auxiliary() });
  });

  test.each([
    [
      "its name is missing",
      { auxiliaryCNIChainName: undefined },
      /00-multus\.conf has no auxiliaryCNIChainName: set it/,
    ],
    ["its name is empty", { auxiliaryCNIChainName: "" }, /has no auxiliaryCNIChainName/],
    [
      "it has another name",
      { auxiliaryCNIChainName: "other" },
      /auxiliary chain in \/other by .*, not in \/vendor: set/,
    ],
    ["it lies elsewhere", { clusterNetwork: "/host/etc/cni/net.d/10.conf" }, /in \/etc\/cni\/net\.d\/vendor by /],
    ["the runtime calls another plugin", { type: "bridge" }, /00-multus\.conf does not call Multus/],
  ])("pods are not chained where Multus has no such chain: %s", async (_, settings, problem) => {
    withMultus(settings);
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ problem: expect.stringMatching(problem) });
    writeFileSync(node.path("net.d", "00-multus.conf"), multus());
    expect(await installer.reconcile()).toEqual({ chain: auxiliary() });
  });

  test("without the plugin that Multus calls first there is no file", async () => {
    withMultus();
    rmSync(node.path("bin", "passthru"));
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({
      problem: expect.stringMatching(/bin lacks passthru, which.*: update Multus' manifest/),
    });
    expect(readdirSync(node.path("vendor"))).toEqual([]);
    writeFileSync(node.path("bin", "passthru"), "");
    expect(await installer.reconcile()).toEqual({ chain: auxiliary() });
    rmSync(node.path("bin", "passthru"));
    expect(await installer.reconcile()).toEqual({ problem: expect.stringContaining("lacks passthru") });
    expect(existsSync(auxiliary())).toBe(true);
  });

  const broken: readonly (readonly [string, string, string])[] = [
    ["half-written", "{", "is not valid JSON"],
    ["empty", "", "is empty"],
    ["without a type", '{"name":"vendor"}', '"type" is missing'],
    ["with a value of another type", '{"type":"vendor","capabilities":{"mac":"true"}}', '"capabilities.mac"'],
    ["a list", LIST, '"type" is missing; a list needs a name'],
  ];

  test.each(broken)("a file of others that is %s keeps the node from being ready", async (_, text, reason) => {
    withMultus();
    const installer = node.installer();
    const file = node.path("vendor", "50-vendor.conf");
    writeFileSync(file, text);
    const said = `${file} ${reason}`;
    const problem = { problem: expect.stringContaining(said) };
    expect(await installer.reconcile()).toEqual(problem);
    expect(await installer.reconcile()).toEqual(problem);
    expect(node.lines.filter((line) => line.includes(said))).toEqual([
      expect.stringContaining(
        "Multus skips the auxiliary chain, so no pod is redirected; correct the file or remove it",
      ),
    ]);
    writeFileSync(file, '{"type":"tuning"}');
    expect(await installer.reconcile()).toEqual({ chain: auxiliary() });
  });

  test.each([
    ["to a missing file", "nowhere.conf", "is a link to a file that is not there"],
    ["out of what the container sees", "/opt/vendor/tuning.conf", "which is not mounted here"],
    ["to itself", "50-vendor.conf", "cannot be read"],
  ])("so does a link %s", async (_, target, reason) => {
    withMultus();
    symlinkSync(target, node.path("vendor", "50-vendor.conf"));
    expect(await node.installer().reconcile()).toEqual({ problem: expect.stringContaining(reason) });
  });

  test("files that Multus does not read there are ignored", async () => {
    withMultus();
    for (const name of ["50-vendor.conflist", "50-vendor.json", "README"])
      writeFileSync(node.path("vendor", name), "{");
    mkdirSync(node.path("vendor", "50-vendor.conf"));
    expect(await node.installer().reconcile()).toEqual({ chain: auxiliary() });
  });

  test("a directory that has our file's name is a problem, and stays", async () => {
    withMultus();
    mkdirSync(auxiliary());
    const installer = node.installer();
    expect(await installer.reconcile()).toEqual({ problem: `${auxiliary()} is a directory: remove it` });
    await installer.remove(false);
    expect(statSync(auxiliary()).isDirectory()).toBe(true);
  });

  test("pods are not chained before Multus has written its configuration", async () => {
    on({});
    mkdirSync(node.path("vendor"));
    node.chaining = "auxiliary";
    expect((await node.installer().reconcile()).problem).toMatch("no valid CNI configuration in ");
  });

  test("earlier edits are undone", async () => {
    withMultus();
    node.chaining = "edit";
    const before = node.content();
    await node.installer().reconcile();
    node.chaining = "auxiliary";
    await node.installer("second").reconcile();
    expect(Object.keys(node.content()).filter((name) => name.includes("multus"))).toEqual(["net.d/00-multus.conf"]);
    expect(node.content()).toMatchObject(before);
  });

  test("it is left to a successor with the same chain", async () => {
    withMultus();
    const installer = node.installer();
    await installer.reconcile();
    await installer.leave();
    expect(readdirSync(node.path("vendor"))).toEqual(["99-linkerd-cni.conf"]);
  });

  test.each([
    ["auto", true],
    ["auto", false],
    ["auxiliary", true],
  ] as const)(
    "another folder is left by the next installer, with chaining %s, chained %s",
    async (chaining, chained) => {
      withMultus();
      const before = node.content();
      inOtherFolder();
      await node.installer().reconcile();
      expect(existsSync(dropin("vendor"))).toBe(true);
      node.chaining = chaining;
      node.auxiliaryDir = "/vendor";
      writeFileSync(node.path("net.d", "00-multus.conf"), multus());
      node.now += 60_000;
      const next = node.installer("second", chained);
      await next.reconcile();
      expect(existsSync(dropin("vendor"))).toBe(false);
      await next.remove(false);
      expect(node.content()).toMatchObject(before);
      // Multus ends pods with the chain that started them.
      expect(node.pluginFiles()).toEqual(["linkerd-cni", "linkerd-cni-redirect"]);
      expect(node.read("00-multus.conf")).toBe(multus());
    },
  );

  test("another folder's file stays until pods are chained in another way", async () => {
    withOtherFolder();
    const installer = node.installer();
    await installer.reconcile();
    await installer.leave();
    node.chaining = "dropin";
    const next = node.installer("second");
    expect((await next.reconcile()).problem).toMatch("chaining is dropin, but");
    expect(existsSync(dropin("vendor"))).toBe(true);
    node.chaining = "auto";
    await next.reconcile();
    expect(existsSync(dropin("vendor"))).toBe(false);
  });

  test("a folder that becomes that of the list's drop-ins keeps the file", async () => {
    withOtherFolder();
    const installer = node.installer();
    await installer.reconcile();
    await installer.leave();
    rmSync(node.path("net.d", "00-multus.conf"));
    writeFileSync(node.path("net.d", NAME), LIST.replace('"k"', '"vendor"'));
    node.chaining = "auto";
    const next = node.installer("second");
    for (const _ of [1, 2, 3]) {
      node.now += 60_000;
      await next.reconcile();
      expect(called()).toEqual(["bridge", "linkerd-cni-redirect"]);
    }
  });

  test("an uninstall removes the folder's file that an installer with another chain left", async () => {
    withOtherFolder();
    const installer = node.installer();
    await installer.reconcile();
    node.chaining = "auto";
    await node.installer().remove(false);
    expect(existsSync(dropin("vendor"))).toBe(false);
    expect(existsSync(node.path("net.d", "linkerd-cni.journal"))).toBe(false);
  });

  test("a file in a folder that is not mounted keeps the executable, is named, and is noted until it is seen", async () => {
    withMultus();
    await node.installer().reconcile();
    node.chaining = "auto";
    node.now += 60_000;
    for (const owner of ["second", "third"]) {
      const next = node.installer(owner);
      await next.reconcile();
      const named = node.lines.filter((line) => line.includes("/vendor/99-linkerd-cni.conf, by an earlier installer"));
      expect(named).toHaveLength(owner === "second" ? 1 : 3);
      await next.remove(false);
      expect(node.pluginFiles()).toEqual(["linkerd-cni", "linkerd-cni-redirect"]);
      expect(Object.keys(node.content()).sort()).toEqual([
        "bin/linkerd-cni",
        "bin/linkerd-cni-redirect",
        "net.d/00-multus.conf",
        "net.d/linkerd-cni.journal",
      ]);
    }
    expect(existsSync(auxiliary())).toBe(true);
    node.chaining = "auxiliary";
    const last = node.installer("fourth");
    await last.reconcile();
    await last.remove(false);
    expect(existsSync(auxiliary())).toBe(false);
    expect(existsSync(node.path("net.d", "linkerd-cni.journal"))).toBe(false);
  });
});

test("an uninstall keeps the plugin while a drop-in of others calls it", async () => {
  on({ [NAME]: LIST });
  const installer = node.installer();
  await installer.reconcile();
  writeFileSync(node.path("net.d", "k", "50-by-hand.conf"), '{"type":"linkerd-cni"}');
  await expect(installer.remove(false)).rejects.toThrow("k/50-by-hand.conf still calls linkerd-cni");
  expect([called(), existsSync(node.path("bin", "linkerd-cni"))]).toEqual([["bridge", "linkerd-cni"], true]);
});
