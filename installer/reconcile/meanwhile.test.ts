import { renameSync, rmSync, writeFileSync } from "node:fs";
import { type Disk, nodeDisk } from "../apply/disk";
import { LIST, Node, SINGLE } from "./node.testing";

let node: Node;
const on = (files: Readonly<Record<string, string>>): Node => {
  node = new Node(files);
  return node;
};
afterEach(() => rmSync(node.root, { recursive: true }));

const NEXT_LIST = LIST.replace("bridge", "ptp");

/** A disk with a callback just before an operation on a path with this suffix. */
function meanwhile(
  operation: "copy" | "create" | "rename" | "name",
  ending: string,
  happen: () => void,
  times = 1,
): Disk {
  let left = times;
  const run = (...args: readonly unknown[]): void => {
    const isIt = args.some((arg) => typeof arg === "string" && arg.endsWith(ending));
    if (isIt && left > 0) {
      left -= 1;
      happen();
    }
    (nodeDisk[operation] as (...all: readonly unknown[]) => void)(...args);
  };
  return { ...nodeDisk, [operation]: run };
}

/** Writes atomically, as careful owners do. */
const replace = (name: string, text: string) => {
  writeFileSync(node.path(`${name}.new`), text);
  renameSync(node.path(`${name}.new`), node.path("net.d", name));
};
const remove = (name: string) => rmSync(node.path("net.d", name));
const install = async (disk: Disk) => {
  const installer = node.installer("first", true, { disk });
  return { installer, status: await installer.reconcile() };
};
/** The node's final configuration without us. */
const restored = async (installer: { remove(keep: boolean): Promise<void> }) => {
  await installer.remove(false);
  return node.content();
};

describe("what the owner does while the plugin is being copied", () => {
  test.each([
    ["10-k.conflist", LIST],
    ["10-k.conf", SINGLE],
  ])("%s is deleted, and does not come back", async (name, first) => {
    on({ [name]: first });
    const { installer, status } = await install(meanwhile("copy", "linkerd-cni-tmp", () => remove(name)));
    expect(status).toEqual({ problem: expect.stringContaining("no valid CNI configuration") });
    expect(Object.keys(node.content()).filter((path) => path.includes("10-k"))).toEqual([]);
    expect(await restored(installer)).toEqual({});
  });

  test("another file comes first: that one is chained, and the former one never was", async () => {
    on({ "10-k.conflist": LIST });
    const disk = meanwhile("copy", "linkerd-cni-tmp", () => replace("00-multus.conflist", NEXT_LIST));
    expect((await install(disk)).status).toEqual({ chain: node.path("net.d", "00-multus.conflist") });
    expect(node.lines.filter((line) => line.includes("wrote") && line.includes("10-k"))).toEqual([]);
  });
});

describe("what the owner does at the moment of the change", () => {
  const tmp = (name: string) => `${name}.linkerd-cni-tmp`;

  test("an owner that keeps writing is waited for, and its content stays", async () => {
    on({ "10-k.conflist": LIST });
    node.multipleBinDirs = true;
    let count = 0;
    const write = () => {
      count += 1;
      replace("10-k.conflist", LIST.replace("bridge", `bridge-${count}`));
    };
    const { installer, status } = await install(meanwhile("create", tmp("10-k.conflist"), write, 8));
    expect(status).toEqual({ problem: expect.stringContaining("is being changed"), againInMs: expect.any(Number) });
    expect(node.types("10-k.conflist")).toEqual([`bridge-${count}`]);
    while (count < 8) await installer.reconcile();
    expect(await installer.reconcile()).toMatchObject({ chain: node.path("net.d", "10-k.conflist") });
    expect(node.types("10-k.conflist")).toEqual(["bridge-8", "linkerd-cni"]);
  });
});

test("a list of ours that another program truncates is written again", async () => {
  on({ "10-k.conf": SINGLE });
  const installer = node.installer();
  await installer.reconcile();
  for (let times = 0; times < 2; times += 1) {
    writeFileSync(node.path("net.d", "10-k.conf.linkerd-cni.conflist"), "{");
    node.now += 60_000;
    expect(await installer.reconcile()).toEqual({ chain: node.path("net.d", "10-k.conf.linkerd-cni.conflist") });
    expect(node.types("10-k.conf.linkerd-cni.conflist")).toEqual(["bridge", "linkerd-cni"]);
  }
});
