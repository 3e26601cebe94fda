/** A crowd in a process of its own: thousands of sockets take all of a processor, and who asks beside them has another. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { bundle } from "../../build/bundle";
import { root } from "../../build/paths";
import type { CrowdOptions } from "./crowd";

export class CrowdProcess {
  private constructor(private readonly child: ChildProcess) {}

  /** @param script path of its program, from {@link bundleCrowd} @returns once each client has connected */
  static async open(
    script: string,
    port: number,
    sent: string,
    options: CrowdOptions & { readonly size: number },
  ): Promise<CrowdProcess> {
    const child = fork(script, [JSON.stringify({ port, sent, ...options })], { execArgv: [] });
    const failed = once(child, "exit").then(() => Promise.reject(new Error("the crowd has ended")));
    await Promise.race([once(child, "message"), failed]);
    failed.catch(() => undefined);
    return new CrowdProcess(child);
  }

  async leave(): Promise<void> {
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }
}

/** Writes the program of {@link CrowdProcess}. */
export const bundleCrowd = (script: string): Promise<void> =>
  bundle(join(root, "test", "support", "crowd.main.ts"), script);
