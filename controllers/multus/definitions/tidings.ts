import type { Tiding } from "../../events";
import { DEFINITION_NAME, OWNER, OWNER_LABEL } from "./definition";

/** What is told in Events. Each reason has a page in docs/runbooks. */

export const foreignDefinition: Tiding = {
  reason: "LinkerdMultusForeignDefinition",
  action: "Leaving",
  type: "Warning",
  note:
    `The namespace wants a NetworkAttachmentDefinition ${DEFINITION_NAME} of the Multus operator, but this one is not ` +
    `its own (label ${OWNER_LABEL}=${OWNER}) and is left as it is; delete or rename it`,
};

export function configInvalid(problem: string): Tiding {
  return {
    reason: "LinkerdMultusConfigInvalid",
    action: "Waiting",
    type: "Warning",
    note: `${problem}. Existing NetworkAttachmentDefinitions stay as they are, none is created before this is mended`,
  };
}
