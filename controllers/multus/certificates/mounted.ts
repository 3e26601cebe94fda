import { readFileSync } from "node:fs";
import { reasonOf } from "../../../cni/errors";
import type { Clock } from "../../../process/clock";
import type { Log } from "../../../process/log";
import { Loop } from "../../../process/loop";
import { join } from "../../../system/path";
import { readPair } from "./certificate";
import type { ServedCertificate } from "./served";

interface MountedCertificateDeps {
  readonly served: ServedCertificate;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const CHECK_EVERY_MS = 5_000;

/** Follows a certificate in files that another program, such as cert-manager, writes and rotates. */
export class MountedCertificate {
  private problem = "";

  /** @param directory of `tls.crt` and `tls.key` */
  constructor(
    private readonly directory: string,
    private readonly deps: MountedCertificateDeps,
  ) {}

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    await new Loop(async () => {
      this.check();
      return CHECK_EVERY_MS;
    }, this.deps).run();
  }

  private check(): void {
    const { directory } = this;
    const { log, served } = this.deps;
    try {
      const [cert = "", key = ""] = ["tls.crt", "tls.key"].map((name) => readFileSync(join(directory, name), "utf8"));
      const pair = { cert, key };
      // During a rotation one file may be newer than the other.
      served.serve({ ...pair, validTo: readPair(pair, "tls").validTo });
      this.problem = "";
    } catch (error) {
      const problem = reasonOf(error);
      if (problem !== this.problem) log.warn(`certificate in ${directory}: ${problem}`);
      this.problem = problem;
    }
  }
}
