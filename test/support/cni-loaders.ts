/** CNI configuration directories as tests write them down, and what this project expects the runtimes to load of them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { libcniOf } from "../../cni/conflist/dropin";
import { readDropin } from "../../cni/conflist/read";
import { dropinsOf } from "../../installer/plan/chaining";
import { planInstall, pristine } from "../../installer/plan/plan";
import type { FoundFile } from "../../installer/state/node-state";
import { observe } from "../../installer/state/observe";
import type { Paths } from "../../installer/state/paths";
import { pluginFile } from "../../installer/state/plugin-file";

/** Parts of a file: texts, each character a byte, and texts with how often they repeat. */
type Parts = readonly (string | readonly [text: string, times: number])[];

/** Files by their path; a path that ends in a slash is a directory's. */
export type Directory = Readonly<Record<string, string | Parts | { readonly link: string }>>;

/** The runtimes whose loaders the tests ask, as a Node names them. */
export const RUNTIMES = {
  containerd: "containerd://2.2.0",
  crio: "cri-o://1.34.0",
  "containerd 1.6": "containerd://1.6.39",
  "crio 1.28": "cri-o://1.28.0",
} as const;
export type Runtime = keyof typeof RUNTIMES;

/** `NAME: TYPE, TYPE`, or null if the runtime has no network. */
export type Loaded = string | null;
export type Answers = Readonly<Record<Runtime, Loaded>>;

/**
 * The plugins in the plugin directory: all types that occur. CRI-O also skips lists with plugins that it does not find;
 * the installer cannot tell where CRI-O looks for them, and is not ready instead.
 */
export const TYPES = ["bridge", "portmap", "loopback", "tuning", "x", "true"] as const;

function write(path: string, content: Directory[string]): void {
  mkdirSync(path.endsWith("/") ? path : dirname(path), { recursive: true });
  if (path.endsWith("/")) return;
  if (typeof content === "object" && "link" in content) {
    symlinkSync(content.link, path);
    return;
  }
  const parts: Parts = typeof content === "string" ? [content] : content;
  const text = parts.map((part) => (typeof part === "string" ? part : part[0].repeat(part[1]))).join("");
  writeFileSync(path, Buffer.from(text, "latin1"));
}

/** Directories in the file system, as long as a function uses them. */
export function withDirectories<T>(all: readonly Directory[], use: (paths: readonly string[], root: string) => T): T {
  const root = mkdtempSync(join(tmpdir(), "linkerd-cni-loaders-"));
  try {
    const paths = all.map((files, index) => {
      const path = join(root, "net", `${index}`);
      mkdirSync(path, { recursive: true });
      for (const [name, content] of Object.entries(files)) write(`${path}/${name}`, content);
      return path;
    });
    mkdirSync(join(root, "bin"));
    return use(paths, root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

function pathsOf(netDir: string, binDir: string): Paths {
  return {
    mountPrefix: "",
    mounted: [netDir, binDir],
    netDir,
    binDir,
    onNode: { netDir, binDir },
    plugins: [join(binDir, "linkerd-cni")],
    image: join(binDir, "image"),
    attached: join(binDir, "linkerd-cni.attached"),
    kubeconfig: join(netDir, "k"),
    journal: join(netDir, "linkerd-cni.journal"),
    reread: join(netDir, "linkerd-cni.reread.linkerd-cni-tmp"),
    directories: join(dirname(binDir), "directories.json"),
  };
}

const plugin = { ...pluginFile(), isCopy: () => true };

function typeOf({ bytes = new Uint8Array() }: FoundFile): string {
  const config = readDropin(bytes);
  return config.kind === "single" ? config.types[0] : "?";
}

/** Recorded directories and what the runtimes load of them; a test asks the runtimes' loaders whether it is still so. */
export function recorded(): readonly (Answers & { readonly is: string; readonly files: Directory })[] {
  const path = join(__dirname, "..", "fixtures", "loaders.jsonl");
  return readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** What a runtime loads of a directory, as the installer sees it. */
export function loadedByUs(netDir: string, binDir: string, runtime: Runtime): Loaded {
  const paths = pathsOf(netDir, binDir);
  const state = observe(paths, plugin);
  const wanted = { owner: "me", chained: true, chaining: "auto", stanza: {} } as const;
  const plan = planInstall(state, paths, { ...wanted, runtime: RUNTIMES[runtime] });
  const isCrio = runtime.startsWith("crio");
  if (!isCrio && (plan.neighbours.problem !== undefined || plan.findings.length > 0)) return null;
  const name = plan.active ?? plan.loopback;
  const config = pristine(state, libcniOf(RUNTIMES[runtime])).find((each) => each.name === name)?.config;
  if (config === undefined || config.kind === "invalid") return null;
  const dropins =
    libcniOf(RUNTIMES[runtime]) === "1.1" ? [] : dropinsOf(config, state).filter(({ ignored }) => !ignored);
  return `${config.name || (isCrio ? name : "")}: ${[...config.types, ...dropins.map(typeOf)].join(", ")}`;
}
