/** Asks containerd's and CRI-O's own loaders what they load of CNI configuration directories. */
import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { root } from "../../build/paths";
import { directories } from "../support/cni-directories";
import {
  type Answers,
  type Directory,
  type Loaded,
  loadedByUs,
  RUNTIMES,
  type Runtime,
  recorded,
  TYPES,
  withDirectories,
} from "../support/cni-loaders";
import { missing, suite } from "../support/requirements";

/** One program for each libcni: containerd 2.2 and CRI-O 1.34 have 1.3, containerd 1.6 and CRI-O 1.28 have 1.1. */
const LOADERS = { "cni-load": "go.mod", "cni-load-1.1": "libcni-1.1.mod" } as const;
const pathOf = (loader: keyof typeof LOADERS) => join(root, ".cache", "bin", loader);

interface Answer {
  readonly name: string;
  readonly types: readonly string[];
  readonly error?: string;
}

function ask(loader: keyof typeof LOADERS, paths: readonly string[], plugins: string, ...more: readonly string[]) {
  const output = execFileSync(pathOf(loader), ["-plugins", plugins, ...more, ...paths], { maxBuffer: 1 << 28 });
  const said = ({ name, types, error }: Answer): Loaded =>
    error === undefined ? `${name}: ${types.join(", ")}` : null;
  return output
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly containerd: Answer; readonly crio: Answer })
    .map(({ containerd, crio }) => ({ containerd: said(containerd), crio: said(crio) }));
}

/** What the runtimes and what we say. */
function compare(all: readonly Directory[]) {
  return withDirectories(all, (paths, at) => {
    const plugins = join(at, "bin");
    for (const type of TYPES) symlinkSync(pathOf("cni-load"), join(plugins, type));
    const [now, before] = [ask("cni-load", paths, plugins), ask("cni-load-1.1", paths, plugins)];
    return paths.map((path, index) => {
      const { containerd, crio } = now[index] as Answers;
      const older = before[index] as Answers;
      const theirs: Answers = { containerd, crio, "containerd 1.6": older.containerd, "crio 1.28": older.crio };
      const runtimes = Object.keys(RUNTIMES) as Runtime[];
      const ours = Object.fromEntries(runtimes.map((runtime) => [runtime, loadedByUs(path, plugins, runtime)]));
      return { theirs, ours: ours as Answers };
    });
  });
}

suite("CNI configuration, loaded by the runtimes' own loaders", missing({ programs: ["go"] }), () => {
  beforeAll(() => {
    const cwd = join(root, "test", "tools", "cni-load");
    const env = { ...process.env, CGO_ENABLED: "0" };
    const flags = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w"];
    for (const [loader, mod] of Object.entries(LOADERS)) {
      const output = pathOf(loader as keyof typeof LOADERS);
      execFileSync("go", ["build", ...flags, `-modfile=${mod}`, "-o", output, "."], { cwd, env });
    }
  }, 600_000);

  test("the record is what they load", () => {
    const all = recorded();
    const found = compare(all.map(({ files }) => files)).map(({ theirs }) => theirs);
    const expected = all.map(({ is: _, files: __, ...answers }) => answers);
    expect(found).toEqual(expected);
  });

  test("the installer agrees about directories at random", () => {
    const all = fc.sample(directories, 600);
    const compared = compare(all);
    const line = (index: number, loaded: Loaded) =>
      JSON.stringify({ seed: process.env["SEED"], files: all[index], loaded });
    for (const runtime of Object.keys(RUNTIMES) as Runtime[]) {
      expect(compared.map(({ ours }, index) => line(index, ours[runtime]))).toEqual(
        compared.map(({ theirs }, index) => line(index, theirs[runtime])),
      );
      // Neither is rare.
      const loaded = compared.filter(({ theirs }) => theirs[runtime] !== null).length;
      expect(Math.min(loaded, all.length - loaded)).toBeGreaterThan(100);
    }
  });

  test.each<[string, Directory]>([
    [
      "9,990 levels",
      { "10-a.conflist": ['{"name":"n","x":', ["[", 9989], ["]", 9989], ',"plugins":[{"type":"bridge"}]}'] },
    ],
    ["5 MiB", { "10-a.conflist": [[" ", 5 * 2 ** 20], '{"name":"n","plugins":[{"type":"bridge"}]}'] }],
  ])("of %s they load a list that the installer does not edit", (_, files) => {
    const [found] = compare([files]);
    expect(found?.theirs).toMatchObject({ containerd: "n: bridge", "containerd 1.6": "n: bridge" });
    expect(found?.ours).toMatchObject({ containerd: null, "containerd 1.6": null });
  });

  test("only CRI-O's cni_default_network makes it take another list than the first", () => {
    const [first, second] = ["a", "b"].map((name) => `{"name":"${name}","plugins":[{"type":"bridge"}]}`);
    withDirectories([{ "10-a.conflist": first ?? "", "20-b.conflist": second ?? "" }], (paths, at) => {
      symlinkSync(pathOf("cni-load"), join(at, "bin", "bridge"));
      const taken = (...more: readonly string[]) => ask("cni-load", paths, join(at, "bin"), ...more)[0]?.crio;
      expect([taken(), taken("-network", "b"), taken("-network", "c")]).toEqual(["a: bridge", "b: bridge", null]);
    });
  });
});
