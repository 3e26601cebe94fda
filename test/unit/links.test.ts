import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(__dirname, "..", "..");
const FOLDERS = ["docs", "dist/charts", "examples", "bench"];
const inside = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
const pages = [...readdirSync(root), ...FOLDERS.flatMap(inside)].filter((name) => name.endsWith(".md"));

/** The anchor that GitHub gives a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

const text = (page: string) => readFileSync(join(root, page), "utf8").replace(/^```.*?^```$/gms, "");

const anchors = (page: string) =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchor(heading));

function broken(page: string): readonly string[] {
  const targets = [...text(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => {
    const [path = "", fragment] = target.split("#");
    const found = path === "" ? page : join(dirname(page), path);
    if (!existsSync(join(root, found))) return true;
    return fragment !== undefined && found.endsWith(".md") && !anchors(found).includes(fragment);
  });
}

test("the documents are found", () => {
  expect(pages).toEqual(expect.arrayContaining(["README.md", "CONTRIBUTING.md", "docs/installer.md"]));
});

test.each(pages)("%s: each link leads to a file, and to a heading of it", (page) => {
  expect(broken(page)).toEqual([]);
});

/** Pages that messages of l5d-cni name: `docs("cli.md#check")`, `readme("hosts")`. */
const named = readdirSync(join(root, "cli"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .flatMap((name) => [...readFileSync(join(root, "cli", name), "utf8").matchAll(/\b(docs|readme)\("([^"]+)"\)/g)])
  .map(([, of, target = ""]) => (of === "docs" ? join("docs", target) : `README.md#${target}`));

test.each([...new Set(named)])("l5d-cni links to %s, which exists", (target) => {
  const [page = "", fragment] = target.split("#");
  expect(existsSync(join(root, page))).toBe(true);
  if (fragment !== undefined) expect(anchors(page)).toContain(fragment);
});

const entries = [
  ...readFileSync(join(root, "docs", "contribute", "architecture.md"), "utf8").matchAll(/`([\w/-]+\.ts)(?::(\w+))?`/g),
];

test("architecture.md has entries", () => {
  expect(entries.length).toBeGreaterThan(40);
});

test.each(entries.map(([, file = "", name = ""]) => [file, name]))("architecture.md: %s has %s", (file, name) => {
  // A function, a class or a constant of a file, or a method.
  const definition = new RegExp(
    `^(export )?(async )?(function|class|const|interface|type) ${name}\\b|^  (\\w+ )*${name}[(<]`,
    "m",
  );
  expect(readFileSync(join(root, file), "utf8")).toMatch(name === "" ? /./ : definition);
});
