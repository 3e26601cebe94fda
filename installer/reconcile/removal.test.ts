import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readAttachments } from "../state/attachments";
import { LIST, Node, PLUGIN, SINGLE } from "./node.testing";

let node: Node;
const on = (files: Readonly<Record<string, string>>): Node => {
  node = new Node(files);
  return node;
};
afterEach(() => rmSync(node.root, { recursive: true }));

const write = (name: string, text: string) => writeFileSync(node.path("net.d", name), text);
const rename = (from: string, to: string) => renameSync(node.path("net.d", from), node.path("net.d", to));
const hasPlugin = () => existsSync(node.path("bin", "linkerd-cni"));
const chained = async (...files: readonly string[]) => {
  const installer = node.installer();
  await installer.reconcile();
  expect(files.map((name) => node.types(name).at(-1))).toEqual(files.map(() => "linkerd-cni"));
  return installer;
};

test("pods that start while the chain is removed still find the plugin", async () => {
  on({ "10-k.conflist": LIST });
  const installer = await chained("10-k.conflist");
  const waits: unknown[] = [];
  node.sleep = async (ms) => waits.push([ms, node.read("10-k.conflist"), hasPlugin()]);
  await installer.remove(false);
  expect(waits).toEqual([[1_000, LIST, true]]);
  expect(node.content()).toEqual({ "net.d/10-k.conflist": LIST });
});

test("a list that its owner is writing is waited for, and its chain removed", async () => {
  on({ "10-k.conflist": LIST });
  const installer = await chained("10-k.conflist");
  const list = JSON.parse(node.read("10-k.conflist"));
  list.plugins.push({ type: "istio-cni" });
  write("10-k.conflist", "");
  node.sleep = async () => {
    write("10-k.conflist", JSON.stringify(list));
    node.sleep = async () => undefined;
  };
  await installer.remove(false);
  expect(node.types("10-k.conflist")).toEqual(["bridge", "istio-cni"]);
  expect(hasPlugin()).toBe(false);
});

test("a file that stays empty does not block the removal", async () => {
  on({ "10-k.conflist": LIST });
  const installer = await chained("10-k.conflist");
  write("10-k.conflist", "");
  let waited = 0;
  node.sleep = async (ms) => {
    waited += ms;
  };
  await installer.remove(false);
  expect(waited).toBe(5_000);
  expect(node.content()).toEqual({ "net.d/10-k.conflist": "" });
});

const MIB = 1 << 20;
test.each([
  ["has grown too large to be read", "10-k.conflist", () => node.read("10-k.conflist").padEnd(2 * MIB + 1)],
  ["delegates to it", "00-multus.conf", () => `{"type":"multus","delegates":[${node.read("10-k.conflist")}]}`],
])(
  "if a configuration that %s still calls the plugin, the plugin stays, and the error names the file",
  async (...row) => {
    const [, name, text] = row;
    on({ "10-k.conflist": LIST });
    const installer = await chained("10-k.conflist");
    write(name, text());
    await expect(installer.remove(false)).rejects.toThrow(`${node.path("net.d", name)} still calls linkerd-cni`);
    expect(hasPlugin()).toBe(true);
  },
);

test("an owner that keeps restoring the chain keeps the plugin", async () => {
  on({ "10-k.conflist": LIST });
  const installer = await chained("10-k.conflist");
  const text = node.read("10-k.conflist");
  node.sleep = async () => write("10-k.conflist", text);
  await expect(installer.remove(false)).rejects.toThrow("still calls linkerd-cni");
  expect(node.content()["bin/linkerd-cni"]).toBe(PLUGIN);
  expect(node.read("10-k.conflist")).toBe(LIST);
});

test("a file after the one in force does not block the removal, and is named", async () => {
  const own = '{"cniVersion":"1.0.0","name":"own","type":"linkerd-cni"}';
  on({ "10-k.conflist": LIST, "99-own.conf": own });
  const installer = await chained("10-k.conflist");
  await installer.remove(false);
  expect(node.content()).toEqual({ "net.d/10-k.conflist": LIST, "net.d/99-own.conf": own });
  expect(node.lines.at(-1)).toContain("99-own.conf, which is not in force, calls the removed plugin");
});

const CILIUM = LIST.replace("bridge", "cilium-cni");

describe("a configuration that Cilium sets aside", () => {
  test("does not have our stanza when Cilium restores it", async () => {
    on({ "10-k.conflist": LIST });
    const installer = await chained("10-k.conflist");
    write("05-cilium.conflist", CILIUM);
    rename("10-k.conflist", "10-k.conflist.cilium_bak");
    await installer.reconcile();
    node.now += 1_000;
    await installer.reconcile();
    expect(node.types("05-cilium.conflist")).toEqual(["cilium-cni", "linkerd-cni"]);
    expect(node.read("10-k.conflist.cilium_bak")).toBe(LIST);
    await installer.remove(false);
    expect(node.content()).toEqual({ "net.d/05-cilium.conflist": CILIUM, "net.d/10-k.conflist.cilium_bak": LIST });
  });

  test("also while the installer stops", async () => {
    on({ "10-k.conflist": LIST });
    const installer = await chained("10-k.conflist");
    write("05-cilium.conflist", CILIUM);
    rename("10-k.conflist", "10-k.conflist.cilium_bak");
    await installer.remove(false);
    expect(node.content()).toEqual({ "net.d/05-cilium.conflist": CILIUM, "net.d/10-k.conflist.cilium_bak": LIST });
  });

  test("if it was a list made from a single plugin's file", async () => {
    on({ "10-k.conf": SINGLE });
    const installer = await chained("10-k.conf.linkerd-cni.conflist");
    write("05-cilium.conflist", CILIUM);
    rename("10-k.conf.linkerd-cni.conflist", "10-k.conf.linkerd-cni.conflist.cilium_bak");
    await installer.reconcile();
    rename("10-k.conf", "10-k.conf.cilium_bak");
    await installer.reconcile();
    expect(node.types("10-k.conf.linkerd-cni.conflist.cilium_bak")).toEqual(["bridge"]);
    await installer.remove(false);
    expect(node.read("10-k.conf.cilium_bak")).toBe(SINGLE);
    expect(node.types("10-k.conf.linkerd-cni.conflist.cilium_bak")).toEqual(["bridge"]);
    expect(hasPlugin()).toBe(false);
  });

  test("and stays unchanged if it is not ours", async () => {
    on({
      "10-k.conflist": LIST,
      "20-x.conflist.cilium_bak": LIST,
      "30-x.cilium_bak": "x",
      "40-x.conf.cilium_bak": "{",
    });
    const before = node.content();
    await chained("10-k.conflist");
    expect(node.content()).toMatchObject({ ...before, "net.d/10-k.conflist": expect.anything() });
  });
});

test("configurations that others chained and Cilium set aside do not change if nothing is to be chained", async () => {
  const theirs = LIST.replace('{"type":"bridge"}', '{"type":"bridge"}, {"type":"linkerd-cni"}');
  on({ "05-cilium.conflist": CILIUM, "10-k.conflist.cilium_bak": theirs });
  await node.installer("first", false).reconcile();
  expect(node.read("10-k.conflist.cilium_bak")).toBe(theirs);
});

test("the original of a half-written list is kept: every byte is restored", async () => {
  const owners = LIST.replace('"name"', ' "name"');
  on({ "10-k.conflist": owners });
  const installer = await chained("10-k.conflist");
  const text = JSON.stringify(JSON.parse(node.read("10-k.conflist")));
  write("10-k.conflist", "");
  await installer.reconcile();
  write("10-k.conflist", text);
  await installer.reconcile();
  await installer.remove(false);
  expect(node.content()).toEqual({ "net.d/10-k.conflist": owners });
});

describe("with attachments for which the plugin is still called", () => {
  const listed = () => Object.keys(node.content()).filter((name) => name.startsWith("bin/"));
  const attach = (...names: readonly string[]) => {
    for (const name of names) {
      const [containerId = "", ifName = ""] = name.split("@");
      const config = Buffer.from('{"plugins":[{"type":"linkerd-cni"}]}').toString("base64");
      writeFileSync(node.path("cache", "results", name), JSON.stringify({ containerId, ifName, config }));
    }
  };
  const other = { containerId: "z", ifName: "eth0", config: Buffer.from('{"type":"bridge"}').toString("base64") };
  const ofRuntime = () => readAttachments(node.path("cache"), true);
  const installed = async () => {
    on({ "10-k.conflist": LIST });
    mkdirSync(node.path("cache", "results"), { recursive: true });
    writeFileSync(node.path("cache", "results", "k-z-eth0"), JSON.stringify(other));
    writeFileSync(node.path("cache", "results", "half"), "{");
    return chained("10-k.conflist");
  };

  test("the plugin stays, with a list of them, updated for those that end or begin meanwhile", async () => {
    const installer = await installed();
    attach("a@eth0", "b@eth0");
    let pauses = 0;
    node.sleep = async () => {
      pauses += 1;
      if (pauses !== 2) return;
      expect(existsSync(node.path("bin", "linkerd-cni.attached", "a@eth0"))).toBe(true);
      rmSync(node.path("cache", "results", "a@eth0"));
      attach("c@eth0");
    };
    await installer.remove(false, ofRuntime);
    expect(readdirSync(node.path("bin", "linkerd-cni.attached")).sort()).toEqual(["b@eth0", "c@eth0"]);
    expect(hasPlugin()).toBe(true);
    expect(node.read("10-k.conflist")).toBe(LIST);
    expect(node.lines.at(-1)).toContain("are removed with the last of them");
  });

  test("it is removed at once if all end meanwhile, or none exist, whatever the runtime", async () => {
    const installer = await installed();
    attach("a@eth0");
    node.sleep = async () => {
      if (existsSync(node.path("bin", "linkerd-cni.attached")))
        rmSync(node.path("cache", "results", "a@eth0"), { force: true });
    };
    await installer.remove(true, ofRuntime);
    expect(listed()).toEqual([]);
    await node.installer().reconcile();
    await node.installer().remove(true, ofRuntime);
    expect(listed()).toEqual([]);
  });

  test("only Multus' attachments count, not containerd's", async () => {
    await installed();
    attach("a@eth0");
    expect(readAttachments(node.path("cache"), false)).toEqual([]);
    expect(ofRuntime()).toEqual(["a@eth0"]);
    expect(readAttachments(node.path("absent"), true)).toBeUndefined();
  });
});
