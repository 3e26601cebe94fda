import type { Ended, Io } from "./io";
import { runProgram } from "./program";

/** The result and output of a command line. */
export interface CliRun extends Ended {
  /** By path; `-` is standard output. */
  readonly written: ReadonlyMap<string, Buffer>;
}

/** The environment of a test: inputs are empty by default, and time passes only in sleep. */
export interface World {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Programs by name. */
  readonly programs?: Readonly<Record<string, (args: readonly string[]) => Ended | Promise<Ended>>>;
  readonly colour?: boolean;
  /** Texts by URL. */
  readonly web?: Readonly<Record<string, string>>;
  /** The name of the called program. */
  readonly name?: string;
}

/** Runs a command line in this environment. */
export async function runIn(world: World, args: readonly string[]): Promise<CliRun> {
  const { files = {}, env = {}, programs = {}, colour = false, web = {}, name } = world;
  const said = { out: "", err: "" };
  const written = new Map<string, Buffer>();
  let now = 0;
  const io: Io = {
    env,
    readFile: (path) => {
      const content = files[path];
      if (content === undefined) throw new Error(`no file ${path}`);
      return content;
    },
    writeFile: (path, content) => {
      if (files[path] !== undefined) throw new Error(`EEXIST: file already exists, open '${path}'`);
      written.set(path, content);
    },
    exists: (path) => files[path] !== undefined,
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
    run: async (name, given) => {
      const program = programs[name];
      if (program === undefined) throw Object.assign(new Error(`spawn ${name} ENOENT`), { code: "ENOENT" });
      return program(given);
    },
    sleep: async (milliseconds) => {
      now += milliseconds;
    },
    now: () => now,
    date: () => new Date(now),
    colour,
    fetch: async (url) => {
      const content = web[url];
      if (content === undefined) throw new Error(`${url}: status 404`);
      return content;
    },
  };
  return { code: await runProgram(args, io, name), ...said, written };
}
