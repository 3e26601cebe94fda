import type { Finding } from "./finding";
import { multusFindings } from "./multus";
import { resourceFindings } from "./resources";
import { rightsFindings } from "./rights";
import { rolloutFindings } from "./rollout";
import type { Snapshot } from "./snapshot";

/** All that is found in a cluster. Pure: no I/O, no clock. */
export function inspect(snapshot: Snapshot): readonly Finding[] {
  return [resourceFindings, rightsFindings, rolloutFindings, multusFindings].flatMap((find) => find(snapshot));
}
