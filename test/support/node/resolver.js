/**
 * Under Node, the modules of system/ that call the engine's host are replaced by those of this folder. Its modules, and
 * tests of the host's, import the real ones.
 */
const { existsSync } = require("node:fs");
const { basename, dirname, join } = require("node:path");

const system = join(__dirname, "..", "..", "..", "system");

module.exports = (request, options) => {
  const path = options.defaultResolver(request, options);
  if (dirname(path) !== system) return path;
  const replacement = join(__dirname, basename(path));
  return existsSync(replacement) ? replacement : path;
};
