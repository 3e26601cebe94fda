import { accessFindings } from "./access";
import type { Finding } from "./finding";
import { multusFindings } from "./multus";
import { nodeFindings } from "./nodes";
import { nriFindings } from "./nri";
import { podFindings } from "./pods";
import { absence, resourceFindings } from "./resources";
import { rightsFindings } from "./rights";
import type { Snapshot } from "./snapshot";

/** In causal order, so that the first failure is the cause of later ones. */
const CHECKS = [
  accessFindings,
  resourceFindings,
  rightsFindings,
  nodeFindings,
  nriFindings,
  podFindings,
  multusFindings,
];

/**
 * All findings in a cluster. Pure: no I/O, no clock.
 * @param isOptional whether a cluster without the plugin gets a warning, not an error
 */
export function inspect(snapshot: Snapshot, isOptional = false): readonly Finding[] {
  const absent = absence(snapshot);
  if (isOptional && absent !== undefined) return [{ ...absent, result: "warning" }];
  return absent === undefined ? CHECKS.flatMap((find) => find(snapshot)) : [...accessFindings(snapshot), absent];
}
