/** Whatever owners do with files of one stem, the removal restores their files. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { type Disk, nodeDisk } from "../apply/disk";
import type { PluginFile } from "../state/plugin-file";
import { Node } from "./node.testing";

const RUNS = 150;

const NAMES = ["10-a.conf", "10-a.conflist", "10-a.json", "10-a.conf.conflist", "10-a.json.conflist"] as const;
type Name = (typeof NAMES)[number];

type Step =
  | { readonly do: "write"; readonly name: Name; readonly version: number }
  | { readonly do: "delete"; readonly name: Name }
  | { readonly do: "look" | "restart" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("write" as const), name: fc.constantFrom(...NAMES), version: fc.nat(9) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), name: fc.constantFrom(...NAMES) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("look" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
);

/** A plugin that always runs, without executing it thousands of times. */
const plugin: PluginFile = {
  isCopy: (_, copy) => existsSync(copy),
  failure: async () => undefined,
  renamed: () => undefined,
};

/** Does not wait for a disk. */
const disk: Disk = {
  ...nodeDisk,
  create: (path, bytes, mode) => writeFileSync(path, bytes, { flag: "wx", mode }),
  settle: () => undefined,
};

const contentOf = (name: Name, version: number) =>
  name.endsWith(".conflist")
    ? `{"cniVersion":"1.0.0","name":"l${version}","plugins":[{"type":"bridge","mtu":${version}}]}\n`
    : `{"cniVersion":"0.3.1","name":"s${version}","type":"ptp","mtu":${version}}\n`;

/** Runs a sequence, and returns what owners have lost or got in addition. */
async function lost(steps: readonly Step[]): Promise<readonly string[]> {
  const node = new Node({});
  try {
    const owned = new Map<string, string>();
    const start = () => node.installer("first", true, { plugin, disk });
    let installer = start();
    for (const each of steps) {
      node.now += 20_000;
      if (each.do === "look") await look(installer, node);
      else if (each.do === "restart") installer = start();
      else if (each.do === "write") {
        owned.set(each.name, contentOf(each.name, each.version));
        writeFileSync(node.path("net.d", each.name), contentOf(each.name, each.version));
      } else if (each.do === "delete" && owned.has(each.name) && existsSync(node.path("net.d", each.name))) {
        // A file written and deleted between two looks never existed; a file that is set aside cannot be deleted.
        await look(installer, node);
        if (!existsSync(node.path("net.d", each.name))) continue;
        owned.delete(each.name);
        rmSync(node.path("net.d", each.name));
      }
    }
    await look(installer, node);
    await installer.remove(false);
    const content = node.content();
    const wanted = Object.fromEntries([...owned].map(([name, text]) => [`net.d/${name}`, text]));
    const names = new Set([...Object.keys(content), ...Object.keys(wanted)]);
    return [...names].filter((name) => content[name] !== wanted[name]);
  } finally {
    rmSync(node.root, { recursive: true });
  }
}

/** Reconciles until it no longer waits. */
async function look(installer: ReturnType<Node["installer"]>, node: Node): Promise<void> {
  while ((await installer.reconcile()).againInMs !== undefined) node.now += 2_000;
}

test("in random sequences of writes, deletions and restarts nothing is lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      expect(await lost(steps)).toEqual([]);
    }),
    { numRuns: RUNS },
  );
});
