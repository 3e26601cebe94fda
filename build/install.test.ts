import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "./paths";

let project: string;

/** The manifest of a project whose only dependency is its workspace, so that npm needs no network. */
function write(path: string, content: object): void {
  writeFileSync(join(project, path), JSON.stringify(content));
}

const manifest = { name: "tried", version: "1.0.0", workspaces: ["build"] };

const member = { name: "member", version: "1.0.0" };
const lock = {
  ...{ name: "tried", version: "1.0.0", lockfileVersion: 3, requires: true },
  packages: { "": manifest, build: member, "node_modules/member": { resolved: "build", link: true } },
};

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "install-"));
  mkdirSync(join(project, "build"));
  cpSync(join(root, "build", "install.js"), join(project, "build", "install.js"));
  write("package.json", manifest);
  write("build/package.json", member);
  write("package-lock.json", lock);
});

afterEach(() => rmSync(project, { recursive: true, force: true }));

function start(options: { readonly node?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {}): ChildProcess {
  return spawn(process.execPath, [...(options.node ?? []), join(project, "build", "install.js")], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
  });
}

async function end(child: ChildProcess): Promise<{ code: number; stdout: string; stderr: string }> {
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]);
  return { code, stdout, stderr };
}

async function install(): Promise<void> {
  const left = join(project, "node_modules", "left");
  mkdirSync(join(project, "node_modules"), { recursive: true });
  writeFileSync(left, "");
  const { code, stdout, stderr } = await end(start());
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: "" });
  expect(stderr).toMatch(/^install what package-lock.json names/);
  // As only npm ci does.
  expect(existsSync(left)).toBe(false);
}

/** Whether it would run npm, which it does not find; what it removes for that is put back. */
async function wouldInstall(...node: readonly string[]): Promise<boolean> {
  const stamp = join(project, "node_modules", ".install-stamp");
  const before = readFileSync(stamp);
  const { code, stderr } = await end(start({ node, env: { PATH: "" } }));
  writeFileSync(stamp, before);
  if (code === 0) expect(stderr).toBe("");
  else expect(stderr).toContain("cannot run npm: ");
  return code !== 0;
}

test("installs once, and again only when what is wanted, what is there or the machine changed", async () => {
  await install();
  expect(await wouldInstall()).toBe(false);

  write("package.json", { ...manifest, scripts: { start: "true" } });
  expect(await wouldInstall()).toBe(false);
  write("package.json", { ...manifest, dependencies: { other: "1.0.0" } });
  expect(await wouldInstall()).toBe(true);
  write("package.json", manifest);

  write("build/package.json", { ...member, optionalDependencies: { other: "1.0.0" } });
  expect(await wouldInstall()).toBe(true);
  write("build/package.json", member);

  const otherMachine = join(project, "other-machine.js");
  writeFileSync(otherMachine, 'Object.defineProperty(process, "arch", { value: "other" });');
  expect(await wouldInstall("--require", otherMachine)).toBe(true);

  write("package-lock.json", { ...lock, requires: false });
  expect(await wouldInstall()).toBe(true);
  write("package-lock.json", lock);
  expect(await wouldInstall()).toBe(false);

  // npm writes this after every installation.
  write("node_modules/.package-lock.json", {});
  expect(await wouldInstall()).toBe(true);
});

test("installs again where npm ci was killed or failed", async () => {
  await install();
  const reached = join(project, "reached");
  const endless = `node -e 'fs.writeFileSync("reached", ""); setInterval(() => {}, 1000)'`;
  for (const postinstall of [endless, "exit 3"]) {
    write("package.json", { ...manifest, scripts: { postinstall } });
    write("package-lock.json", { ...lock, requires: false });
    const child = start();
    const ended = end(child);
    if (postinstall === endless) {
      while (!existsSync(reached)) await new Promise((resolve) => setTimeout(resolve, 20));
      process.kill(-child.pid!, "SIGKILL");
    }
    expect((await ended).code).not.toBe(0);
    write("package.json", manifest);
    write("package-lock.json", lock);
    await install();
  }
});

interface Scripts {
  readonly scripts: Readonly<Record<string, string>>;
}

test("every script of the project installs first", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Scripts;
  const installs = (name: string): boolean => {
    const runs = /^npm run (\w+) /.exec(scripts[name] ?? "");
    return runs === null ? scripts[`pre${name}`] === "node build/install.js" : installs(runs[1] ?? "");
  };
  const named = Object.keys(scripts).filter((name) => !(name.startsWith("pre") && name.slice(3) in scripts));
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !installs(name))).toEqual([]);
});
