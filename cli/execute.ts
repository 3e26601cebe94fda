import { spawn } from "node:child_process";
import type { Ended } from "./io";

/** Runs a program to its end, with this one's environment. @throws if it cannot be started */
export function execute(program: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["inherit", "pipe", "pipe"] });
    const said = { out: [] as Buffer[], err: [] as Buffer[] };
    child.stdout.on("data", (part: Buffer) => said.out.push(part));
    child.stderr.on("data", (part: Buffer) => said.err.push(part));
    child.once("error", reject);
    const text = (parts: readonly Buffer[]) => Buffer.concat(parts).toString("utf8");
    child.once("close", (code) => resolve({ code: code ?? 1, out: text(said.out), err: text(said.err) }));
  });
}
