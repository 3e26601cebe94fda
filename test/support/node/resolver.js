/**
 * Under Node, the modules of system/ that call the engine's host are replaced by those of this folder. Its modules, and
 * tests of the host's, import the real ones.
 */
const { existsSync } = require("node:fs");
const { basename, dirname, join } = require("node:path");

const system = join(__dirname, "..", "..", "..", "system");

/** The path of the module that takes the place of one, or the path itself. */
function replaced(path) {
  if (dirname(path) !== system) return path;
  const replacement = join(__dirname, basename(path));
  return existsSync(replacement) ? replacement : path;
}

module.exports = (request, options) => replaced(options.defaultResolver(request, options));
module.exports.replaced = replaced;
