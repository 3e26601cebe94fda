/** Tells whether a directory counts as opened after a file in it, or a directory, was read. Built for tests only. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { isOpened } from "../../system/opened";
import { args, start, write } from "../../system/program";

const [directory = "", path = "", withinMs] = args;

start(async () => {
  const read = async () => (statSync(path).isDirectory() ? readdirSync(path) : readFileSync(path));
  write((await isOpened(directory, read, Number(withinMs))) ? "opened" : "not opened");
  return 0;
});
