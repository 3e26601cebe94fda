import { spawnSync } from "node:child_process";
import * as fs from "node:fs";

/** The plugin's files on the node. Answers are remembered until a file changes. */
export interface PluginFile {
  /** Whether the node's file is the image's own, byte for byte, and executable. @throws where the image's is missing */
  isCopy(source: string, copy: string): boolean;
  /** Why the plugin does not run; undefined where it answers VERSION. */
  failure(command: readonly [string, ...string[]]): string | undefined;
}

const BLOCK = 128 * 1024;
const VERSION_DEADLINE_MS = 5_000;
const ASK_AGAIN_MS = 5_000;

function stamp(path: string): string | undefined {
  const stat = fs.statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return undefined;
  return [stat.dev, stat.ino, stat.size, stat.mtimeMs, stat.ctimeMs, stat.mode & 0o111].join(" ");
}

/** Compares block by block: the executable is larger than this container's memory may be. */
function sameContent(left: number, right: number): boolean {
  const [one, two] = [Buffer.alloc(BLOCK), Buffer.alloc(BLOCK)];
  for (;;) {
    const read = fs.readSync(left, one, 0, BLOCK, null);
    if (read !== fs.readSync(right, two, 0, BLOCK, null)) return false;
    if (read === 0) return true;
    if (Buffer.compare(one.subarray(0, read), two.subarray(0, read)) !== 0) return false;
  }
}

function sameFiles(paths: readonly [string, string]): boolean {
  const [left, right] = [fs.openSync(paths[0], "r"), fs.openSync(paths[1], "r")];
  try {
    return sameContent(left, right);
  } finally {
    fs.closeSync(left);
    fs.closeSync(right);
  }
}

function isExecutable(path: string): boolean {
  return (fs.statSync(path).mode & 0o111) !== 0;
}

/** Runs it as a container runtime does, with an environment that holds nothing else. */
function askVersion([program, ...args]: readonly [string, ...string[]]): string | undefined {
  const child = spawnSync(program, args, {
    env: { CNI_COMMAND: "VERSION" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: VERSION_DEADLINE_MS,
    maxBuffer: 64 * 1024,
  });
  if (child.error !== undefined) return child.error.message;
  const answer = child.stdout.toString("utf8");
  if (child.status === 0 && answer.includes('"supportedVersions"')) return undefined;
  return `exit ${child.status ?? child.signal}: ${(answer || child.stderr.toString("utf8")).trim().slice(0, 500)}`;
}

/** Remembers the last answer about each thing, for one state of its files; one that is not final for a short time only. */
function remember<T>(isFinal: (value: T) => boolean): (about: string, state: string, find: () => T) => T {
  const last = new Map<string, { readonly state: string; readonly value: T; readonly until: number }>();
  return (about, state, find) => {
    const known = last.get(about);
    if (known?.state === state && performance.now() < known.until) return known.value;
    const value = find();
    const until = isFinal(value) ? Number.POSITIVE_INFINITY : performance.now() + ASK_AGAIN_MS;
    last.set(about, { state, value, until });
    return value;
  };
}

export function pluginFile(): PluginFile {
  const comparison = remember<boolean>(() => true);
  const answer = remember<string | undefined>((failure) => failure === undefined);
  return {
    isCopy: (source, copy) => {
      const [wanted, found] = [stamp(source), stamp(copy)];
      if (wanted === undefined) throw new Error(`the plugin's file ${source} is missing in this image`);
      if (found === undefined) return false;
      return comparison(copy, `${wanted} ${found}`, () => isExecutable(copy) && sameFiles([source, copy]));
    },
    failure: (command) => {
      const files = command.map((word) => stamp(word) ?? word);
      return answer(command.join(" "), files.join(" "), () => askVersion(command));
    },
  };
}
