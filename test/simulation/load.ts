/** Loads the installer's program for the simulation: the real code, bundled with the modules in `seam/` below it. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { setFlagsFromString } from "node:v8";
import vm from "node:vm";
import { context, type Plugin } from "esbuild";
import { root } from "../../build/paths";
import type { Kernel } from "./seam/kernel";

/** A small change of a file of the product, to see whether the simulation notices it. */
export interface Patch {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const SEAM = join(root, "test", "simulation", "seam");
const REPLACED = /^(\.\.?\/)+(system\/)?(net|child|exchange|opened|crypto)$/;

const seam: Plugin = {
  name: "seam",
  setup({ onResolve }) {
    onResolve({ filter: /^node:fs$/ }, () => ({ path: join(SEAM, "fs.ts") }));
    onResolve({ filter: REPLACED }, ({ path, importer }) => {
      const found = join(dirname(importer), path);
      const isReplaced = dirname(found) === join(root, "system") && dirname(importer) !== SEAM;
      return isReplaced ? { path: join(SEAM, `${basename(found)}.ts`) } : undefined;
    });
  },
};

let planted: Patch | undefined;

const patched: Plugin = {
  name: "patch",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (planted === undefined || relative(root, path) !== planted.file) return undefined;
      const { file, from, to } = planted;
      const text = readFileSync(path, "utf8");
      if (text.split(from).length !== 2) throw new Error(`${file} does not hold once: ${from}`);
      return { contents: text.replace(from, () => to), loader: "ts" };
    });
  },
};

/** Only what a patch changes is built again. */
const bundler = context({
  entryPoints: [join(SEAM, "main.ts")],
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "es2022",
  write: false,
  logLevel: "error",
  inject: [join(SEAM, "globals.ts")],
  plugins: [patched, seam],
});

async function bundled(patch: Patch | undefined): Promise<string> {
  planted = patch;
  const { outputFiles } = await (await bundler).rebuild();
  return outputFiles?.[0]?.text ?? "";
}

/** Ends the bundler. */
export const end = async () => (await bundler).dispose();

interface Exports {
  enter(kernel: Kernel | undefined): void;
  main(): void;
}

/** Where processes run. */
export interface Realm {
  readonly main: () => void;
  /** Runs a callback of a process, and what follows of its promises. */
  readonly turn: (of: Kernel, callback: () => void) => void;
}

/** A program that can be started many times. */
export interface Program {
  /** Processes that share one queue of promises: fast. */
  readonly shared: Realm;
  /** A realm whose processes can run while those of another one are in the middle of an operation. */
  readonly separate: (index: number) => Realm;
}

setFlagsFromString("--allow-natives-syntax");
const drain = new Function("%PerformMicrotaskCheckpoint()") as () => void;

/** Of Node's own modules only hashes are used, and a bundle copies each name of a module. */
const modules: Readonly<Record<string, object>> = { "node:crypto": { createHash }, "node:tls": {} };

function realm(text: string, options: vm.CompileFunctionOptions, run: (callback: () => void) => void): Realm {
  const loaded = vm.compileFunction(text, ["module", "require"], { ...options, filename: "installer.js" });
  const module = { exports: {} };
  loaded(module, (name: string) => modules[name]);
  const { enter, main } = module.exports as Exports;
  let running: Kernel | undefined;
  const turn = (of: Kernel, callback: () => void) => {
    const outer = running;
    running = of;
    enter(of);
    run(callback);
    running = outer;
    enter(outer);
  };
  return { main, turn };
}

function separate(text: string): Realm {
  const globals: { turn?: (() => void) | undefined } = vm.createContext(
    { TextEncoder, TextDecoder, URLSearchParams, queueMicrotask, Buffer, atob, btoa },
    { microtaskMode: "afterEvaluate" },
  );
  vm.runInContext("Error.stackTraceLimit = 0", globals);
  const script = new vm.Script("turn()");
  return realm(text, { parsingContext: globals }, (callback) => {
    const outer = globals.turn;
    globals.turn = callback;
    script.runInContext(globals);
    globals.turn = outer;
  });
}

/** @param patch a planted fault */
export async function load(patch?: Patch): Promise<Program> {
  const text = await bundled(patch);
  const shared = realm(text, {}, (callback) => {
    callback();
    drain();
  });
  // The first one has its queue of promises to itself.
  const realms = [shared];
  return {
    shared,
    separate: (index) => {
      realms[index] ??= separate(text);
      return realms[index];
    },
  };
}
