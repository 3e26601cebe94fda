import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apply, type Change, nodeDisk } from "./disk";
import { describe as tell } from "./messages";
import { observe } from "./observe";
import type { Places } from "./places";
import { planInstall, planRemoval, STEPS } from "./plan";
import { pluginFile } from "./plugin-file";
import { pluginLayout } from "./plugin-layout";

let root: string;
const at = (...names: string[]) => join(root, ...names);
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "linkerd-cni-layout-"));
  for (const name of ["image", "lib", "node", "net.d"]) mkdirSync(at(name));
  writeFileSync(at("image", "linkerd-cni"), "version 1", { mode: 0o755 });
});
afterEach(() => rmSync(root, { recursive: true }));

/** The layout that the image has now, on a node that calls its directory /opt/cni/bin. */
function places(): Places {
  const settings = {
    binDir: { here: at("node"), onNode: "/opt/cni/bin" },
    pluginDir: at("image"),
    libraryDir: at("lib"),
  };
  return {
    mountPrefix: "",
    mounted: [],
    netDir: at("net.d"),
    binDir: at("node"),
    plugin: at("node", "linkerd-cni"),
    kubeconfig: at("net.d", "kubeconfig"),
    journal: at("net.d", "linkerd-cni.journal"),
    layout: pluginLayout(settings),
  };
}

const changes = (now: Places) => {
  const wanted = { owner: "me", chained: true, stanza: { type: "linkerd-cni" }, kubeconfig: "{}" };
  const { steps } = planInstall(observe(now, pluginFile()), now, wanted);
  return STEPS.flatMap((step) => steps[step]);
};
const run = (all: readonly Change[]) => {
  for (const change of all) apply(change, nodeDisk);
};
const tree = () => readdirSync(at("node"), { recursive: true }).sort();
const withLibraries = () => {
  writeFileSync(at("lib", "ld-linux-x86-64.so.2"), "loader");
  writeFileSync(at("lib", "libc.so.6"), "libc");
};
const aWhileAgo = () => utimesSync(at("node", "linkerd-cni"), Date.now() / 1000 - 61, Date.now() / 1000 - 61);

test("without a C library in the image, the executable itself is what runtimes call", () => {
  rmSync(at("lib"), { recursive: true });
  run(changes(places()));
  expect(tree()).toEqual(["linkerd-cni"]);
  expect(readFileSync(at("node", "linkerd-cni"), "utf8")).toBe("version 1");
  expect(places().layout.command).toEqual([at("node", "linkerd-cni")]);
});

test("a launcher names the node's paths, and everything that it needs lies in a folder of its own", () => {
  withLibraries();
  run(changes(places()));
  const { layout } = places();
  const [, folder = ""] = layout.directories;
  const names = ["ld-linux-x86-64.so.2", "libc.so.6", "linkerd-cni"];
  expect(readdirSync(folder).sort()).toEqual(names);
  const launcher = readFileSync(at("node", "linkerd-cni"), "latin1");
  const onNode = folder.replace(at("node"), "/opt/cni/bin");
  expect(launcher).toContain(`${onNode}/ld-linux-x86-64.so.2\0`);
  expect(launcher).toContain(`${onNode}/linkerd-cni\0`);
  expect(layout.command).toEqual([
    join(folder, "ld-linux-x86-64.so.2"),
    "--library-path",
    folder,
    join(folder, "linkerd-cni"),
  ]);
  expect(changes(places())).toEqual([]);
});

test("the last change is the launcher, so that no runtime finds half a plugin", () => {
  withLibraries();
  const binChanges = changes(places()).filter(({ path }) => path.startsWith(at("node")));
  expect(binChanges.at(-1)).toMatchObject({ do: "write", path: at("node", "linkerd-cni") });
  expect(binChanges.map((change) => change.do)).toEqual(["mkdir", "mkdir", "copy", "copy", "copy", "write"]);
});

test("a version that was replaced stays for those who are just starting it, and then goes", () => {
  withLibraries();
  run(changes(places()));
  const [, before = ""] = places().layout.directories;
  writeFileSync(at("image", "linkerd-cni"), "another version", { mode: 0o755 });
  run(changes(places()));
  expect(changes(places())).toEqual([]);
  expect(existsSync(join(before, "linkerd-cni"))).toBe(true);
  aWhileAgo();
  run(changes(places()));
  expect(existsSync(before)).toBe(false);
  const [, now = ""] = places().layout.directories;
  expect(readFileSync(join(now, "linkerd-cni"), "utf8")).toBe("another version");
});

test("what is damaged is put right, and only that", () => {
  withLibraries();
  run(changes(places()));
  const [, folder = ""] = places().layout.directories;
  writeFileSync(join(folder, "libc.so.6"), "other");
  const repair = changes(places());
  expect(repair.filter((change) => change.do === "copy").map(({ path }) => path)).toEqual([join(folder, "libc.so.6")]);
  run(repair);
  expect(changes(places())).toEqual([]);
});

test("removal takes every version, and what a crash left of one", () => {
  withLibraries();
  run(changes(places()));
  writeFileSync(at("image", "linkerd-cni"), "another version", { mode: 0o755 });
  run(changes(places()));
  const [, folder = ""] = places().layout.directories;
  writeFileSync(join(folder, "libc.so.6.linkerd-cni-tmp"), "half");
  run(planRemoval(observe(places(), pluginFile()), places(), false));
  expect(tree()).toEqual([]);
});

test("removal of what was never there is no failure", () => {
  withLibraries();
  run(planRemoval(observe(places(), pluginFile()), places(), false));
  expect(tree()).toEqual([]);
});

test("what is done to a directory is told as that", () => {
  withLibraries();
  const told = (all: readonly Change[]) => all.map((change) => tell(change).split(" ")[0]);
  const first = changes(places());
  expect(told(first.filter(({ path }) => path.startsWith(at("node"))))).toEqual([
    "made",
    "made",
    "wrote",
    "wrote",
    "wrote",
    "wrote",
  ]);
  run(first);
  expect(new Set(told(planRemoval(observe(places(), pluginFile()), places(), false)))).toEqual(new Set(["removed"]));
});

test("a C library without its loader is a broken image", () => {
  writeFileSync(at("lib", "libc.so.6"), "libc");
  expect(places).toThrow("holds no ld-linux*: the image is incomplete");
});
