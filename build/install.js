/**
 * What npm start and npm test do first: npm ci, unless node_modules holds what package-lock.json says already.
 * It runs before any dependency is there, on any Node that the project takes.
 */
const { spawn } = require("node:child_process");
const { createHash } = require("node:crypto");
const { existsSync, readFileSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");

const root = join(__dirname, "..");
const modules = join(root, "node_modules");
/** Lies in node_modules, so that it goes with them. */
const stamp = join(modules, ".install-stamp");

const read = (...path) => readFileSync(join(root, ...path), "utf8");

/** What of a manifest npm reads to install: changed scripts are no reason to install again. */
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

/** Tells every few seconds, or each second on a terminal, how far npm is: by itself it says nothing before its end. */
function showProgress() {
  const { stderr } = process;
  const packages = Object.keys(JSON.parse(read("package-lock.json")).packages).filter((path) => path !== "");
  const start = Date.now();
  const tell = () => {
    const there = packages.filter((path) => existsSync(join(root, path, "package.json"))).length;
    const text = `npm ci: ${there} packages, ${Math.round((Date.now() - start) / 1000)} s`;
    stderr.write(stderr.isTTY ? `\r${text}` : `${text}\n`);
  };
  stderr.write("install what package-lock.json names: about a minute the first time\n");
  const timer = setInterval(tell, stderr.isTTY ? 1000 : 5000);
  return () => {
    clearInterval(timer);
    if (stderr.isTTY) stderr.write("\r\u001b[2K");
  };
}

function install() {
  // First: an npm that is killed must not leave a stamp.
  rmSync(stamp, { force: true });
  const done = showProgress();
  const args = ["ci", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"];
  // Standard output belongs to what runs next.
  const npm = spawn("npm", args, { cwd: root, stdio: ["ignore", 2, 2] });
  const end = (code) => {
    done();
    process.exitCode = code;
  };
  npm.on("error", (error) => {
    process.stderr.write(`cannot run npm ci: ${error.message}\n`);
    end(1);
  });
  npm.on("exit", (code) => {
    end(code ?? 1);
    if (code !== 0) return;
    writeFileSync(`${stamp}.new`, digest());
    renameSync(`${stamp}.new`, stamp);
  });
}

if (!isInstalled()) install();
