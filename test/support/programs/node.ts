/** Runs one of the cases on the engine, and prints the result. */
import { args, start, write } from "../../../system/program";
import { cases } from "./cases";

const [name = "", directory = ""] = args;
start(async () => {
  write(`${JSON.stringify(await cases[name]?.(directory))}\n`);
  return 0;
});
