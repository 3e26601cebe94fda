import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

const root = join(__dirname, "..", "..");
const folder = join(root, ".github", "workflows");
const read = (path: string): string => readFileSync(path, "utf8");

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, object>>;
}

describe.each(readdirSync(folder))("workflow %s", (name) => {
  const text = read(join(folder, name));

  test("names each action of others by its digest, and its version beside it", () => {
    const others = [...text.matchAll(/uses: (?!\.\/)(.*)/g)].map(([, action = ""]) => action);
    for (const action of others) expect(action).toMatch(/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test("may only read unless a job says otherwise", () => {
    const { permissions, jobs } = parse(text) as Workflow;
    expect(permissions).toEqual({ contents: "read" });
    expect(Object.keys(jobs).length).toBeGreaterThan(0);
  });
});

test("one action has one digest everywhere", () => {
  const actions = readdirSync(folder).flatMap((name) => [
    ...read(join(folder, name)).matchAll(/uses: ([\w/-]+)@([0-9a-f]{40})/g),
  ]);
  const digests = new Map<string, Set<string>>();
  for (const [, action = "", digest = ""] of actions) {
    digests.set(action, (digests.get(action) ?? new Set()).add(digest));
  }
  expect(digests.size).toBeGreaterThan(4);
  for (const [, each] of digests) expect(each.size).toBe(1);
});

test(".nvmrc is the Node that .ci/run installs", () => {
  expect(read(join(root, ".nvmrc")).trim()).toBe(/^NODE_LTS=(\S+)$/m.exec(read(join(root, ".ci", "run")))?.[1]);
});
