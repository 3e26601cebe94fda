/** The encoded batches against the kernel that has to understand them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { PRODUCT } from "../../build/programs";
import { examples } from "../../cni/redirect/examples.testing";
import { hasProgram, Node, namespacesMissing } from "../support/netns";
import { suite } from "../support/requirements";

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");
const goldens = join(root, "netlink", "goldens");

/** The rule set as nft lists it, without what differs from run to run. */
function listed(json: string): unknown[] {
  const { nftables } = JSON.parse(json) as { nftables: Record<string, unknown>[] };
  return JSON.parse(
    JSON.stringify(
      nftables.filter((each) => !("metainfo" in each)),
      (key, value) => (key === "handle" ? undefined : value),
    ),
  );
}

suite("golden batches in a real kernel", missing, () => {
  const work = mkdtempSync(join(tmpdir(), "goldens-"));
  const sender = join(work, "send-datagrams");
  let node: Node;

  beforeAll(async () => {
    node = await Node.open();
    const main = join(root, "test", "support", "send-datagrams.ts");
    await buildExecutable(sender, { main, scripts: PRODUCT.scripts });
  });
  afterAll(() => {
    node.close();
    rmSync(work, { recursive: true });
  });

  const send = (pod: string, golden: string) =>
    node.within(pod, sender, [], readFileSync(join(goldens, golden), "utf8")).trim();

  function expectRuleset(pod: string, name: string): void {
    const path = join(goldens, `${name}.ruleset.json`);
    const actual = listed(node.within(pod, "nft", ["--json", "list", "ruleset"]));
    if (process.env["UPDATE_GOLDENS"] === "1") writeFileSync(path, `${JSON.stringify(actual, undefined, 1)}\n`);
    expect(actual).toEqual(JSON.parse(readFileSync(path, "utf8")));
  }

  it.each(Object.keys(examples))("%s", async (name) => {
    const pod = await node.pod();
    expect(send(pod, `${name}.create.hex`)).toBe("0");
    expectRuleset(pod, name);
  });

  it("creates nothing where a table is there, and replaces it as a whole", async () => {
    const pod = await node.pod();
    expect(send(pod, "plain.create.hex")).toBe("0");
    expect(send(pod, "whole.create.hex")).toMatch(/^-17/);
    expectRuleset(pod, "plain");
    expect(send(pod, "whole.replace.hex")).toBe("0");
    expectRuleset(pod, "whole");
  });
});
