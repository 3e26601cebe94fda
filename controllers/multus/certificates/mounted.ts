import { readFileSync } from "node:fs";
import { reasonOf } from "../../../cni/errors";
import type { Clock } from "../../../process/clock";
import type { Log } from "../../../process/log";
import { Loop } from "../../../process/loop";
import { readPair } from "../../../system/crypto";
import { join } from "../../../system/path";
import type { ServedCertificate } from "./served";

interface MountedCertificateDeps {
  readonly served: ServedCertificate;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const CHECK_EVERY_MS = 5_000;

/**
 * Follows a certificate in files that another program, such as cert-manager, writes and rotates, until the signal is
 * given. Its names are the user's choice: a configuration may have an address instead of the service.
 * @param directory of `tls.crt` and `tls.key`
 */
export async function followFiles(directory: string, { served, log, ...deps }: MountedCertificateDeps): Promise<void> {
  let problem = "";
  const check = async () => {
    try {
      const [cert = "", key = ""] = ["tls.crt", "tls.key"].map((name) => readFileSync(join(directory, name), "utf8"));
      // During a rotation one file may be newer than the other.
      served.serve({ cert, key, ...readPair(cert, key, "") });
      problem = "";
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== problem) log.warn(`certificate in ${directory}: ${reason}`);
      problem = reason;
    }
    return CHECK_EVERY_MS;
  };
  await new Loop(check, deps).run();
}
