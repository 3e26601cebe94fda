import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../../cni/log";
import type { Clock } from "../../clock";
import { readPair } from "./credential";
import type { Shown } from "./shown";

interface Tools {
  /** Where `tls.crt` and `tls.key` are. */
  readonly directory: string;
  readonly shown: Shown<Mounted>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

interface Mounted {
  readonly cert: string;
  readonly key: string;
  readonly validTo: number;
}

const LOOK_EVERY_MS = 5_000;

/** Follows a certificate that somebody else makes and rotates, such as cert-manager, in files. */
export class MountedCertificate {
  private problem = "";

  constructor(private readonly tools: Tools) {}

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    const { clock, signal } = this.tools;
    while (!signal.aborted) {
      await this.look();
      await clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  private async look(): Promise<void> {
    const { directory, log, shown } = this.tools;
    try {
      const [cert, key] = await Promise.all(
        ["tls.crt", "tls.key"].map((name) => readFile(join(directory, name), "utf8")),
      );
      const pair = { cert: cert ?? "", key: key ?? "" };
      // While the files are replaced one may be newer than the other.
      shown.show({ ...pair, validTo: Date.parse(readPair(pair, "tls").validTo) });
      this.problem = "";
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.problem) log.warn(`certificate in ${directory}: ${message}`);
      this.problem = message;
    }
  }
}
