/**
 * Every npm script runs this first: it installs, unless node_modules already holds what package-lock.json names.
 * It needs no dependency and runs on every Node that the project supports.
 */
const { spawn } = require("node:child_process");
const { createHash } = require("node:crypto");
const { existsSync, readFileSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

const root = join(__dirname, "..");
const modules = join(root, "node_modules");
/** Lies in node_modules, so that it goes with them. */
const stamp = join(modules, ".install-stamp");

let installed = false;

const read = (...path) => readFileSync(join(root, ...path), "utf8");

/** The parts of a manifest that npm installs from: changed scripts are not a reason to install again. */
function wanted(manifest) {
  const { workspaces, overrides, dependencies, devDependencies, optionalDependencies, peerDependencies } = manifest;
  return [workspaces, overrides, dependencies, devDependencies, optionalDependencies, peerDependencies];
}

/** Of what was wanted, for which machine, and what npm says that it installed: another npm command changes that. */
function digest() {
  const manifest = JSON.parse(read("package.json"));
  const members = manifest.workspaces.map((folder) => JSON.parse(read(folder, "package.json")));
  const glibc = process.platform === "linux" && "glibcVersionRuntime" in process.report.getReport().header;
  const machine = [process.platform, process.arch, glibc];
  const state = [read("package-lock.json"), read("node_modules", ".package-lock.json")];
  return createHash("sha256")
    .update(JSON.stringify([[manifest, ...members].map(wanted), machine, state]))
    .digest("hex");
}

function isInstalled() {
  try {
    return readFileSync(stamp, "utf8") === digest();
  } catch (error) {
    if (error.code === "ENOENT") return false;
    throw error;
  }
}

/** Prints progress every few seconds, or each second on a terminal, because npm is silent until it finishes. */
function showProgress() {
  const { stderr } = process;
  const packages = Object.keys(JSON.parse(read("package-lock.json")).packages).filter((path) => path !== "");
  const start = Date.now();
  const tell = () => {
    const there = packages.filter((path) => existsSync(join(root, path, "package.json"))).length;
    const seconds = Math.round((Date.now() - start) / 1000);
    const text = installed ? `compiling C, ${seconds} s` : `npm: ${there} packages, ${seconds} s`;
    stderr.write(stderr.isTTY ? `\r\u001b[2K${text}` : `${text}\n`);
  };
  stderr.write("install what package-lock.json names: about a minute the first time\n");
  const timer = setInterval(tell, stderr.isTTY ? 1_000 : 10_000);
  return () => {
    clearInterval(timer);
    if (stderr.isTTY) stderr.write("\r\u001b[2K");
  };
}

/** Runs a program in the project, and tells the exit code. Standard output belongs to what runs after this. */
function run(program, ...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: ["ignore", 2, "pipe"] });
    child.stderr.on("data", (data) => process.stderr.write(process.stderr.isTTY ? `\r\u001b[2K${data}` : data));
    child.on("error", (error) => reject(new Error(`cannot run ${program}: ${error.message}`)));
    child.on("close", (code) => resolve(code ?? 1));
  });
}

function npm(...args) {
  return run("npm", ...args, "--no-audit", "--no-fund", "--no-progress", "--loglevel=error");
}

/** Installs in two parts, so that C compiles while npm, which keeps one core busy, unpacks the second. */
async function install() {
  // First: an npm that is killed must not leave a stamp.
  rmSync(stamp, { force: true });
  // Removes all that is there, and fails where package.json and package-lock.json differ.
  const code = await npm("ci", "--workspace", "build");
  if (code !== 0) return code;
  // The step that needs the result says why it cannot be made.
  const library = run(process.execPath, "--import", "tsx", "build/library.main.ts").catch(() => {});
  const rest = await npm("install", "--no-save");
  installed = rest === 0;
  if (installed) {
    writeFileSync(`${stamp}.new`, digest());
    renameSync(`${stamp}.new`, stamp);
  }
  await library;
  return rest;
}

if (!isInstalled()) {
  const done = showProgress();
  install()
    .catch((error) => {
      process.stderr.write(`${error.message}\n`);
      return 1;
    })
    .then((code) => {
      done();
      process.exitCode = code;
    });
}
