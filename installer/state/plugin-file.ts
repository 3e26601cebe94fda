import { lstatSync, statSync } from "node:fs";
import type { Chaining } from "../../cni/contract";
import { type Ended, run } from "../../system/child";
import { isSameSync } from "../../system/fs";
import { dirname } from "../../system/path";
import { mountOf, readMountinfo } from "./mounts";
import type { Paths } from "./paths";

/** The plugin's files in the image and on the node. Results are cached until a file changes. */
export interface PluginFile {
  /** Whether the node's file equals the image's, byte for byte, and is executable. @throws if the image's is missing */
  isCopy(source: string, copy: string): boolean;
  /**
   * Why an executable does not run on this node; undefined if it answers VERSION. If this container cannot execute it,
   * the image's copy runs instead.
   */
  failure(path: string, source: string): Promise<string | undefined>;
  /** Takes what is known of a file as known of its new name in the same directory: it need not be compared or run again. */
  renamed(from: string, to: string): void;
}

const VERSION_DEADLINE_MS = 5_000;
const ASK_AGAIN_MS = 5_000;

interface Stamp {
  /** Everything that identifies a file with its content, and survives a rename. */
  readonly file: string;
  /** The same, and the time of the last change, also of its owner, mode, attributes or name. */
  readonly state: string;
}

function stamp(path: string, statOf = statSync): Stamp | undefined {
  const stat = statOf(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return undefined;
  const file = [stat.dev, stat.ino, stat.size, stat.mtimeMs, stat.mode & 0o111].join(" ");
  return { file, state: `${file} ${stat.ctimeMs}` };
}

function isExecutable(path: string): boolean {
  return (statSync(path).mode & 0o111) !== 0;
}

/** The cause, by the code with which the kernel refuses to start a program. */
const REFUSALS: Readonly<Record<string, string>> = {
  ENOEXEC: "it is made for another processor architecture than this node's (ENOEXEC)",
  EACCES: "the node refuses to execute it: a file system mounted noexec, or a policy such as SELinux (EACCES)",
  EPERM: "the node refuses to execute it: a policy such as fapolicyd or AppArmor (EPERM)",
  ENOENT: "the file, or the interpreter that it names, is missing (ENOENT)",
  ENOMEM: "there is not enough memory to start it (ENOMEM)",
  EAGAIN: "no more processes may be started: a limit of processes, such as pids.max (EAGAIN)",
};

/** The cause, by the signal that ends the plugin. */
const SIGNALS: Readonly<Record<string, string>> = {
  SIGILL: "it needs an instruction that this node's processor lacks (SIGILL)",
  SIGKILL: "it was killed: a memory limit, of the container or the node, or a security agent (SIGKILL)",
  SIGSYS: "a seccomp profile forbids a system call that it needs (SIGSYS)",
  SIGSEGV: "it crashed: too little memory or address space, or a kernel that it does not run on (SIGSEGV)",
};

const VERSION_BYTES = 64 * 1024;
const SHOWN = 200;

/** Whether a text is a CNI VERSION document. */
function isVersionDocument(text: string): boolean {
  try {
    const { cniVersion, supportedVersions } = JSON.parse(text);
    return typeof cniVersion === "string" && Array.isArray(supportedVersions) && supportedVersions.length > 0;
  } catch {
    return false;
  }
}

function reasonOf({ code, signal, error, timedOut, tooMuch, stdout, stderr }: Ended): string | undefined {
  if (error !== undefined) return REFUSALS[error] ?? `it cannot be started (${error})`;
  if (tooMuch) return `it prints more than ${VERSION_BYTES} bytes`;
  if (timedOut) return `no answer within ${VERSION_DEADLINE_MS} ms`;
  if (signal !== undefined) return SIGNALS[signal] ?? `it was ended by ${signal}`;
  if (code === 0 && isVersionDocument(stdout)) return undefined;
  const printed = (stdout.trim() || stderr.trim()).slice(0, SHOWN);
  return `it exits with ${code} and prints ${printed === "" ? "nothing" : JSON.stringify(printed)}`;
}

/** Runs it as a container runtime does, with only these environment variables. */
async function askVersion(program: string): Promise<string | undefined> {
  const env = { CNI_COMMAND: "VERSION" };
  return reasonOf(await run(program, [], { env, cwd: "/", timeoutMs: VERSION_DEADLINE_MS, maxBytes: VERSION_BYTES }));
}

/** Why the executable that a chain calls does not run, with its path. @param chaining undefined: Multus calls it */
export async function failureOf(
  { plugins: [plugin = "", ofDropins = ""], image }: Paths,
  file: PluginFile,
  chaining: Chaining | undefined,
): Promise<string | undefined> {
  const path = chaining === "dropin" || chaining === "auxiliary" ? ofDropins : plugin;
  const why = await file.failure(path, image);
  return why === undefined ? undefined : `${path} does not answer VERSION: ${why}`;
}

/** The image's plugin, and the copies of it on the node. */
export function pluginFile(mountinfo: () => string = readMountinfo): PluginFile {
  const compared = new Map<string, { readonly source: Stamp; readonly copy: Stamp; readonly same: boolean }>();
  const asked = new Map<string, Partial<Stamp> & { readonly failure: string | undefined; readonly at: number }>();
  // Of this container's mount; the node's may differ.
  const isNoexec = (directory: string) => mountOf(mountinfo(), directory)?.options.includes("noexec") === true;
  return {
    isCopy: (source, copy) => {
      // A link may lead to itself.
      const [wanted, found] = [stamp(source), stamp(copy, lstatSync)];
      if (wanted === undefined) throw new Error(`the plugin's file ${source} is missing in this image`);
      if (found === undefined) return false;
      const known = compared.get(copy);
      if (known?.source.state === wanted.state && known.copy.state === found.state) return known.same;
      const same = isExecutable(copy) && isSameSync(source, copy);
      compared.set(copy, { source: wanted, copy: found, same });
      return same;
    },
    failure: async (path, source) => {
      const found = stamp(path);
      const known = asked.get(path);
      const isCurrent = known?.failure === undefined || performance.now() - known.at < ASK_AGAIN_MS;
      if (known !== undefined && known.state === found?.state && isCurrent) return known.failure;
      const failure = await askVersion(isNoexec(dirname(path)) ? source : path);
      asked.set(path, { ...found, failure, at: performance.now() });
      return failure;
    },
    renamed: (from, to) => {
      const found = stamp(to);
      const answer = asked.get(from);
      if (answer !== undefined && answer.file === found?.file) asked.set(to, { ...answer, ...found });
      const comparison = compared.get(from);
      if (found !== undefined && comparison?.copy.file === found.file) compared.set(to, { ...comparison, copy: found });
    },
  };
}
