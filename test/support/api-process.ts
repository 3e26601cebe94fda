/** An API server for tests in a process of its own, which answers while this one starts many plugins. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { join } from "node:path";
import { bundle } from "../../build/bundle";
import { root } from "../../build/paths";

export class ApiProcess {
  private constructor(
    private readonly child: ChildProcess,
    /** Path of a kubeconfig for it. */
    readonly kubeconfig: string,
  ) {}

  /** @param directory where its program and the kubeconfig are put */
  static async open(directory: string): Promise<ApiProcess> {
    const script = join(directory, "api-process.js");
    await bundle(join(root, "test", "support", "api-process.main.ts"), script);
    const child = fork(script, [], { execArgv: [] });
    const [message] = (await once(child, "message")) as [{ kubeconfig: string }];
    const kubeconfig = join(directory, "api-process.kubeconfig");
    await writeFile(kubeconfig, message.kubeconfig);
    return new ApiProcess(child, kubeconfig);
  }

  /** Lets those that are started here not take its processor, as if it were another machine's. */
  prefer(): void {
    try {
      setPriority(this.child.pid as number, -10);
    } catch {
      // Not for an ordinary user.
    }
  }

  /** Sets the delay of answers; gives the number of requests since it was last called. */
  async delay(delayMs: number): Promise<number> {
    this.child.send({ delayMs });
    const [{ requests }] = (await once(this.child, "message")) as [{ requests: number }];
    return requests;
  }

  close(): void {
    this.child.disconnect();
  }
}
