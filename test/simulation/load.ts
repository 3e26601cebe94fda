/** Loads the installer's program for the simulation: the real code, bundled with the modules in `seam/` below it. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { setFlagsFromString } from "node:v8";
import vm from "node:vm";
import { build, type Plugin } from "esbuild";
import { root } from "../../build/paths";
import type { Clock, Party } from "./clock";
import type { Kernel } from "./seam/kernel";

/** A small change of a file of the product, to see whether the simulation notices it. */
export interface Patch {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const SEAM = join(__dirname, "seam");
const REPLACED = /^(\.\.?\/)+(system\/)?(net|child|exchange|opened|program|crypto)$/;

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

const patched = ({ file, from, to }: Patch): Plugin => ({
  name: "patch",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (relative(root, path) !== file) return undefined;
      const text = readFileSync(path, "utf8");
      if (text.split(from).length !== 2) throw new Error(`${file} does not hold once: ${from}`);
      return { contents: text.replace(from, () => to), loader: "ts" };
    });
  },
});

async function bundled(patch: Patch | undefined): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(root, "installer", "main.ts")],
    bundle: true,
    format: "cjs",
    platform: "node",
    target: "es2022",
    write: false,
    logLevel: "error",
    inject: [join(SEAM, "globals.ts")],
    plugins: [...(patch === undefined ? [] : [patched(patch)]), seam],
  });
  return outputFiles[0]?.text ?? "";
}

/** The names that the program takes from the machine instead of Node. */
const GLOBALS = ["__kernel", "setTimeout", "clearTimeout", "performance", "Date", "Math", "require"] as const;

type Run = (...globals: readonly unknown[]) => void;

/** Where a process runs: callbacks are followed by what they have made of promises. */
export interface Realm {
  readonly run: Run;
  readonly turn: (callback: () => void) => void;
}

/** A program that can be started many times. */
export interface Program {
  /** Processes that share one queue of promises: fast. */
  readonly shared: Realm;
  /** Realms whose processes can run while another one is in the middle of an operation. */
  readonly separate: readonly Realm[];
}

const MOST_AT_ONCE = 3;

setFlagsFromString("--allow-natives-syntax");
const drain = new Function("%PerformMicrotaskCheckpoint()") as () => void;

function realm(text: string): Realm {
  const context = vm.createContext(
    { TextEncoder, TextDecoder, URLSearchParams, queueMicrotask, Buffer, turn: undefined },
    { microtaskMode: "afterEvaluate" },
  ) as { turn: (() => void) | undefined };
  const run = vm.compileFunction(text, [...GLOBALS], { parsingContext: context, filename: "installer.js" });
  const script = new vm.Script("turn()");
  const turn = (callback: () => void) => {
    const outer = context.turn;
    context.turn = callback;
    script.runInContext(context as vm.Context);
    context.turn = outer;
  };
  return { run: run as Run, turn };
}

/** @param patch a planted fault */
export async function load(patch?: Patch): Promise<Program> {
  const text = await bundled(patch);
  const run = vm.compileFunction(text, [...GLOBALS], { filename: "installer.js" }) as Run;
  const turn = (callback: () => void) => {
    callback();
    drain();
  };
  return { shared: { run, turn }, separate: Array.from({ length: MOST_AT_ONCE }, () => realm(text)) };
}

/** 2026-11-26 in milliseconds since 1970. */
export const EPOCH = 1_795_651_200_000;

/** Of Node's own modules only hashes are used, and a bundle copies each name of a module. */
const modules: Readonly<Record<string, object>> = { "node:crypto": { createHash }, "node:tls": {} };
const required = (name: string) => modules[name];

/** Starts the program. @param of the process to which its timers belong */
export function start({ run, turn }: Realm, kernel: Kernel, clock: Clock, of: Party): void {
  const timer = (callback: () => void, ms = 1) => clock.set(() => turn(callback), ms, of);
  const clear = (set: ReturnType<typeof timer> | undefined) => {
    if (set !== undefined) set.isCleared = true;
  };
  const time = () => EPOCH + clock.now;
  class VirtualDate extends Date {
    constructor(...given: readonly unknown[]) {
      super(...((given.length === 0 ? [time()] : given) as [number]));
    }
    static override now = time;
  }
  const chance = Object.create(Math, { random: { value: kernel.random } });
  turn(() => run(kernel, timer, clear, { now: () => clock.now }, VirtualDate, chance, required));
}
