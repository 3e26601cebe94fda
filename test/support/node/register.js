/** For programs of the tests that tsx runs: what resolver.js does under Jest. */
const Module = require("node:module");
const { replaced } = require("./resolver");

const resolve = Module._resolveFilename;
Module._resolveFilename = (...given) => replaced(resolve.apply(Module, given));
