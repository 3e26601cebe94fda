/** Files at the bounds of what the installer's executable reads and edits, with its 64 MiB and its stack. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const NAME = "10-k.conflist";
const listWith = (x: string) => `{"cniVersion":"1.0.0","name":"k","x":${x},"plugins":[{"type":"bridge","y":${x}}]}\n`;
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

suite("a list", missing({ root: true }), () => {
  let node: TestNode;
  let installer: Installer;
  beforeAll(buildPrograms);
  afterEach(async () => {
    await installer.stop("SIGKILL");
    node.delete();
  });

  const start = (list: string) => {
    node = new TestNode({});
    writeFileSync(join(node.netDir, NAME), Buffer.from(list, "latin1"));
    installer = node.start();
  };

  test.each([
    ["of almost 2 MiB", listWith(`"${"x".repeat(1_048_000)}"`)],
    ["of 200 KiB in small values", listWith(`[${"1,".repeat(50_000)}1]`)],
    ["with 990 levels", listWith(nested(990))],
    ["with bytes that are not UTF-8", listWith('"caf\xe9"')],
  ])("%s is chained and restored byte for byte", async (_, list) => {
    start(list);
    await installer.says("ends in our stanza");
    const chained = readFileSync(join(node.netDir, NAME), "latin1");
    const end = list.lastIndexOf("]}");
    expect([chained.startsWith(list.slice(0, end)), chained.endsWith(list.slice(end))]).toEqual([true, true]);
    expect(JSON.parse(chained).plugins.map(({ type }: { type: string }) => type)).toEqual(["bridge", "linkerd-cni"]);
    expect(await installer.stop()).toBe(0);
    expect(readFileSync(join(node.netDir, NAME), "latin1")).toBe(list);
  });

  test.each([
    ["of more than 2 MiB", listWith(`"${"x".repeat(1_049_000)}"`), "is larger than 2097152 bytes"],
    ["with 9,990 levels", listWith(nested(9_988)), "nests deeper than 1000 levels"],
  ])("%s is named, and not edited", async (_, list, reason) => {
    start(list);
    await installer.says(`${NAME} ${reason}`);
    await installer.stop("SIGKILL");
    expect(readFileSync(join(node.netDir, NAME), "latin1")).toBe(list);
  });

  test("and files of any size in place of ours do not end the installer", async () => {
    const large = Buffer.alloc(100 << 20, '{"');
    node = new TestNode({ [NAME]: listWith("1") });
    const plugin = join(node.binDir, "linkerd-cni");
    writeFileSync(join(node.netDir, "01-large.conflist"), large);
    writeFileSync(join(node.netDir, "linkerd-cni.journal"), large);
    installer = node.start();
    await installer.says("ends in our stanza");
    for (const round of [1, 2, 3]) {
      writeFileSync(plugin, large);
      await until(`the plugin, round ${round}`, () => statSync(plugin).size !== large.length);
    }
    expect(installer.hasEnded).toBe(false);
    expect(node.answers()).toBe(true);
  });
});
