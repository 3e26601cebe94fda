import { CniError, ErrorCode } from "../cni/errors";
import { refuse } from "../cni/json";
import type { Call } from "./call";

const VALID = "cni.dev/valid-attachments";

/**
 * Nothing outlives a pod's namespace, so there is nothing to collect; the request has to be well-formed all the same.
 * @throws CniError 7
 */
export async function gc(call: Call): Promise<string> {
  const valid = call.config.source[VALID];
  if (valid === undefined) throw new CniError(ErrorCode.config, `GC needs ${VALID}`);
  if (valid !== null && !Array.isArray(valid)) refuse(VALID, valid, "a list");
  return "";
}
