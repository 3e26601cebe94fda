import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { LIST, Node } from "../reconcile/node.testing";
import { watchedDirectories } from "./observe";
import type { Paths } from "./paths";

let node: Node;
const on = (files: Readonly<Record<string, string>>): Node => {
  node = new Node(files);
  return node;
};
afterEach(() => rmSync(node.root, { recursive: true }));

/** Runs twice: incomplete files get a moment. */
async function look() {
  const installer = node.installer();
  await installer.reconcile();
  node.now += 1_000;
  return await installer.reconcile();
}

test("a configuration behind a link follows the owner's writes to the target, and the link is restored", async () => {
  on({});
  writeFileSync(node.path("real"), LIST);
  symlinkSync("../real", node.path("net.d", "10-k.conflist"));
  const installer = node.installer();
  await installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  expect(readFileSync(node.path("real"), "utf8")).toBe(LIST);
  const renewed = LIST.replace("bridge", "ptp");
  writeFileSync(node.path("real"), renewed);
  await installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["ptp", "linkerd-cni"]);
  await installer.remove(false);
  expect(readlinkSync(node.path("net.d", "10-k.conflist"))).toBe("../real");
  expect(node.content()).toEqual({ "net.d/10-k.conflist": renewed });
});

test("a link that leads through a file is not a directory to watch", () => {
  on({});
  writeFileSync(node.path("real"), LIST);
  symlinkSync("../real/10-k.conflist", node.path("net.d", "10-k.conflist"));
  symlinkSync("../real", node.path("net.d", "20-k.conflist"));
  const [netDir, binDir] = [node.path("net.d"), node.path("bin")];
  const paths = { netDir, binDir, mountPrefix: node.root, mounted: [netDir] } as unknown as Paths;
  expect(watchedDirectories(paths)).toEqual([netDir, binDir, node.root]);
});

test("the target of a link counts more than what others add to the list made from it", async () => {
  on({});
  writeFileSync(node.path("real"), LIST);
  symlinkSync("../real", node.path("net.d", "10-k.conflist"));
  const installer = node.installer();
  await installer.reconcile();
  const list = JSON.parse(node.read("10-k.conflist"));
  list.plugins.push({ type: "istio-cni" });
  writeFileSync(node.path("net.d", "10-k.conflist"), JSON.stringify(list));
  await installer.reconcile();
  expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  await installer.remove(false);
  expect(readlinkSync(node.path("net.d", "10-k.conflist"))).toBe("../real");
});

describe("a configuration that is a link", () => {
  beforeEach(() => on({ "20-other.conflist": LIST }));

  test("to a path that is not mounted is named, and the node is not ready: it may be the one in force", async () => {
    symlinkSync("/opt/cni/conf/10-k.conflist", node.path("net.d", "10-k.conflist"));
    const { problem } = await look();
    expect(problem).toContain(
      "net.d/10-k.conflist is a link to /opt/cni/conf/10-k.conflist, which is not mounted here",
    );
  });

  test("to a path that is not mounted has no effect after the one in force", async () => {
    symlinkSync("/opt/cni/conf/30-k.conflist", node.path("net.d", "30-k.conflist"));
    expect(await look()).toEqual({ chain: node.path("net.d", "20-other.conflist") });
  });

  test("is followed as the node follows it, below the prefix", async () => {
    mkdirSync(node.path("opt"));
    writeFileSync(node.path("opt", "real"), LIST);
    symlinkSync("../../../../opt/real", node.path("opt", "link"));
    symlinkSync("/opt/link", node.path("net.d", "10-k.conflist"));
    expect(await look()).toEqual({ chain: node.path("net.d", "10-k.conflist") });
    expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  });

  test("to a missing file is skipped, even if the directory's name ends with a slash", async () => {
    symlinkSync("/net.d/gone", node.path("net.d", "10-k.conflist"));
    node.netDir = "/net.d/";
    expect(await look()).toEqual({ chain: node.path("net.d", "20-other.conflist") });
  });

  test("to a missing file is skipped and named", async () => {
    symlinkSync("/net.d/gone", node.path("net.d", "10-k.conflist"));
    expect(await look()).toEqual({ chain: node.path("net.d", "20-other.conflist") });
    expect(node.lines.join("")).toContain("10-k.conflist is a link to a file that is not there: skipped");
  });
});
