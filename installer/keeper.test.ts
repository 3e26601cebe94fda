import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../cni/log";
import { readApiServer } from "../kubernetes/in-cluster";
import { nodeDisk } from "./disk";
import { createInstruments } from "./instruments";
import { Keeper } from "./keeper";
import { kubeconfig } from "./kubeconfig";
import { placesOf } from "./places";
import { pluginFile } from "./plugin-file";
import { readSettings } from "./settings";
import { readStanza } from "./stanza-source";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n {"type":"bridge"}\n]}\n';
/** Answers VERSION, and nothing else. */
const PLUGIN = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'
`;
const SINGLE = '{"cniVersion":"0.3.1","name":"k","type":"bridge"}\n';

/** A node's directories in a place of their own, and installers on it. */
class Node {
  readonly root = mkdtempSync(join(tmpdir(), "linkerd-cni-node-"));
  readonly lines: string[] = [];
  now = 0;

  constructor(files: Readonly<Record<string, string>>) {
    for (const directory of ["net.d", "bin", "image", "account"]) mkdirSync(this.path(directory));
    writeFileSync(this.path("image", "linkerd-cni"), PLUGIN);
    chmodSync(this.path("image", "linkerd-cni"), 0o755);
    writeFileSync(this.path("account", "token"), "token-1\n");
    writeFileSync(this.path("account", "ca.crt"), "CA");
    for (const [name, text] of Object.entries(files)) writeFileSync(this.path("net.d", name), text);
  }

  path(...names: string[]): string {
    return join(this.root, ...names);
  }

  read(name: string): string {
    return readFileSync(this.path("net.d", name), "utf8");
  }

  types(name: string): readonly string[] {
    return JSON.parse(this.read(name)).plugins.map(({ type }: { type: string }) => type);
  }

  /** Every file of both directories with its content. */
  content(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      ["net.d", "bin"].flatMap((directory) =>
        readdirSync(this.path(directory)).map((name) => [
          `${directory}/${name}`,
          readFileSync(this.path(directory, name), "utf8"),
        ]),
      ),
    );
  }

  installer(owner = "first") {
    const settings = readSettings([], {
      CONTAINER_MOUNT_PREFIX: this.root,
      DEST_CNI_NET_DIR: "/net.d",
      DEST_CNI_BIN_DIR: "/bin",
      CONTAINER_CNI_BIN_DIR: this.path("image"),
      SERVICE_ACCOUNT_DIR: this.path("account"),
      KUBERNETES_SERVICE_HOST: "fd00::1",
      KUBERNETES_SERVICE_PORT: "6443",
      CNI_NETWORK_CONFIG: JSON.stringify({
        type: "linkerd-cni",
        kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" },
      }),
    });
    const log = createLog("info", "plain", (line) => this.lines.push(line));
    const keeper = new Keeper({
      places: placesOf(settings),
      owner,
      wanted: () => ({ stanza: readStanza(settings), kubeconfig: kubeconfig(readApiServer(settings.cluster)) }),
      disk: nodeDisk,
      plugin: pluginFile(),
      log,
      instruments: createInstruments(),
    });
    return { reconcile: () => keeper.reconcile(this.now), remove: (keep: boolean) => keeper.remove(keep) };
  }
}

let node: Node;
const on = (files: Readonly<Record<string, string>>): Node => {
  node = new Node(files);
  return node;
};
afterEach(() => rmSync(node.root, { recursive: true }));

test("plugin, kubeconfig and chain are put in place, in this order, and removed without a trace", () => {
  on({ "10-k.conflist": LIST, "20-other.conflist": LIST, "99-loopback.conf": SINGLE, "10-k.conflist.bak": "x" });
  const before = node.content();
  const installer = node.installer();
  expect(installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  expect(JSON.parse(node.read("10-k.conflist")).plugins[1].kubernetes.kubeconfig).toBe(
    "/net.d/ZZZ-linkerd-cni-kubeconfig",
  );
  expect(node.read("20-other.conflist")).toBe(LIST);
  expect(readFileSync(node.path("bin", "linkerd-cni"), "utf8")).toBe(PLUGIN);
  expect(statSync(node.path("bin", "linkerd-cni")).mode & 0o777).toBe(0o755);
  expect(statSync(node.path("net.d", "ZZZ-linkerd-cni-kubeconfig")).mode & 0o777).toBe(0o600);
  expect(JSON.parse(node.read("ZZZ-linkerd-cni-kubeconfig"))).toMatchObject({
    clusters: [{ name: "local", cluster: { server: "https://[fd00::1]:6443" } }],
    users: [{ name: "linkerd-cni", user: { token: "token-1" } }],
    "current-context": "linkerd-cni-context",
  });
  const wrote = node.lines.filter((line) => line.includes(" wrote ")).map((line) => line.trim().split("/").at(-1));
  expect(wrote.filter((name) => name !== "linkerd-cni.journal")).toEqual([
    "linkerd-cni",
    "ZZZ-linkerd-cni-kubeconfig",
    "10-k.conflist.linkerd-cni-original",
    "10-k.conflist",
  ]);
  installer.remove(false);
  expect(node.content()).toEqual(before);
});

test("a second look changes nothing and says nothing", () => {
  const installer = on({ "10-k.conflist": LIST }).installer();
  installer.reconcile();
  const [lines, inode] = [node.lines.length, statSync(node.path("net.d", "10-k.conflist")).ino];
  installer.reconcile();
  expect(node.lines).toHaveLength(lines);
  expect(statSync(node.path("net.d", "10-k.conflist")).ino).toBe(inode);
});

test("a single plugin's file becomes a list at its place, and comes back byte for byte", () => {
  on({ "10-k.conf": SINGLE, "20-other.conf": SINGLE });
  const before = node.content();
  const installer = node.installer();
  expect(installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  expect(Object.keys(node.content())).not.toContain("net.d/10-k.conf");
  installer.remove(false);
  expect(node.content()).toEqual(before);
});

test("a list that already has the name is not overwritten", () => {
  on({ "10-k.conf": SINGLE, "10-k.conflist": LIST });
  const before = node.content();
  const installer = node.installer();
  expect(installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conf.conflist") });
  expect(node.read("10-k.conflist")).toBe(LIST);
  installer.remove(false);
  expect(node.content()).toEqual(before);
});

test("the owner's new version of a file is chained again, and is what comes back", () => {
  on({ "10-k.conf": SINGLE });
  const installer = node.installer();
  installer.reconcile();
  const renewed = SINGLE.replace("bridge", "ptp");
  writeFileSync(node.path("net.d", "10-k.conf"), renewed);
  installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["ptp", "linkerd-cni"]);
  installer.remove(false);
  expect(node.content()).toEqual({ "net.d/10-k.conf": renewed });
});

test("a configuration that comes first takes the chain over, and the other one is put back", () => {
  on({ "10-k.conflist": LIST });
  const installer = node.installer();
  installer.reconcile();
  writeFileSync(node.path("net.d", "00-multus.conf"), SINGLE);
  expect(installer.reconcile()).toEqual({ chain: node.path("net.d", "00-multus.conflist") });
  expect(node.read("10-k.conflist")).toBe(LIST);
  installer.remove(false);
  expect(node.content()).toEqual({ "net.d/00-multus.conf": SINGLE, "net.d/10-k.conflist": LIST });
});

test("a file that is not whole is waited for, and named once", () => {
  on({ "10-k.conflist": "" });
  const installer = node.installer();
  expect(installer.reconcile()).toEqual({ problem: expect.stringContaining("no valid CNI configuration") });
  installer.reconcile();
  expect(node.lines.filter((line) => line.includes("10-k.conflist is empty"))).toHaveLength(1);
  writeFileSync(node.path("net.d", "10-k.conflist"), LIST);
  expect(installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
});

test("a new token reaches the kubeconfig; a token that is away leaves the old one", () => {
  const installer = on({ "10-k.conflist": LIST }).installer();
  installer.reconcile();
  writeFileSync(node.path("account", "token"), "token-2");
  installer.reconcile();
  expect(node.read("ZZZ-linkerd-cni-kubeconfig")).toContain('"token-2"');
  rmSync(node.path("account", "token"));
  expect(installer.reconcile()).toEqual({ problem: expect.stringContaining("token") });
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
});

test("what a successor has installed is neither fought over nor removed", () => {
  on({ "10-k.conflist": LIST });
  const [old, successor] = [node.installer("old"), node.installer("new")];
  old.reconcile();
  successor.reconcile();
  const installed = node.content();
  expect(old.reconcile()).toEqual({ problem: expect.stringContaining("new has installed since") });
  old.remove(false);
  expect(node.content()).toEqual(installed);
});

test("without its journal, what was set aside is found by what the files hold", () => {
  on({ "10-k.conf": SINGLE });
  const before = node.content();
  node.installer().reconcile();
  rmSync(node.path("net.d", "linkerd-cni.journal"));
  const next = node.installer("second");
  expect(next.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  expect(node.read("10-k.conf.linkerd-cni-original")).toBe(SINGLE);
  next.remove(false);
  expect(node.content()).toEqual(before);
});

test("a list of ours that somebody takes away takes no original with it", () => {
  on({ "10-k.conf": SINGLE });
  const before = node.content();
  const installer = node.installer();
  installer.reconcile();
  renameSync(node.path("net.d", "10-k.conflist"), node.path("net.d", "10-k.conflist.bak"));
  installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  rmSync(node.path("net.d", "10-k.conflist"));
  rmSync(node.path("net.d", "10-k.conflist.bak"));
  installer.remove(false);
  expect(node.content()).toEqual(before);
});

test("a plugin that another agent adds to a list of ours stays, now and after the removal", () => {
  on({ "10-k.conf": SINGLE });
  const installer = node.installer();
  installer.reconcile();
  const list = JSON.parse(node.read("10-k.conflist"));
  list.plugins.push({ type: "istio-cni" });
  writeFileSync(node.path("net.d", "10-k.conflist"), JSON.stringify(list));
  installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["bridge", "istio-cni", "linkerd-cni"]);
  const lines = node.lines.length;
  installer.reconcile();
  expect(node.lines).toHaveLength(lines);
  installer.remove(false);
  expect(node.types("10-k.conflist")).toEqual(["bridge", "istio-cni"]);
  expect(node.read("10-k.conf.linkerd-cni-original")).toBe(SINGLE);
  const next = node.installer("second");
  expect(next.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
  expect(node.types("10-k.conflist")).toEqual(["bridge", "istio-cni", "linkerd-cni"]);
});

test("a configuration behind a link follows what its owner writes there, and the link comes back", () => {
  on({});
  writeFileSync(node.path("real"), LIST);
  symlinkSync("../real", node.path("net.d", "10-k.conflist"));
  const installer = node.installer();
  installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  expect(readFileSync(node.path("real"), "utf8")).toBe(LIST);
  const renewed = LIST.replace("bridge", "ptp");
  writeFileSync(node.path("real"), renewed);
  installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["ptp", "linkerd-cni"]);
  installer.remove(false);
  expect(readlinkSync(node.path("net.d", "10-k.conflist"))).toBe("../real");
  expect(node.content()).toEqual({ "net.d/10-k.conflist": renewed });
});
