/** `system/child` on the simulated machine. */
import type * as child from "../../../system/child";
import { kernel } from "./kernel";

/** Milliseconds in which a child process begins, and ends. */
const FORK_MS = 0.5;
const fork = () => new Promise<void>((resolve) => setTimeout(resolve, FORK_MS));

export const run: typeof child.run = (program) => new Promise((resolve) => kernel.execute(program, resolve));
export const apart: typeof child.apart = async (work) => {
  await fork();
  const made = work();
  await fork();
  return made;
};
