import {
  Label,
  MULTUS_NAME,
  NetworkDefinition,
  OperatorPath,
  WEBHOOK_SECRET,
  WEBHOOK_SERVICE,
} from "../../cni/contract";

/** The name of the operator's resources. */
export const NAME = MULTUS_NAME;
/** The Service that the API server calls. */
export const SERVICE = WEBHOOK_SERVICE;
/** The Secret with the webhook's certificate that the operator makes. */
export const OWN_SECRET = WEBHOOK_SECRET;
/** The Secret with the one that cert-manager makes; a name of its own, so that neither takes the other's for its own. */
export const ISSUED_SECRET = `${SERVICE}-certificate`;
/** The authority that signs it unless an issuer is given: a Certificate of cert-manager's, and its Secret. */
export const AUTHORITY = `${SERVICE}-ca`;
/** The issuer by which this authority signs itself. */
export const ROOT = `${SERVICE}-root`;
/** The path at which the webhook answers. */
export const WEBHOOK_PATH = OperatorPath.webhook;

/** The API of what the operator writes. */
export const DEFINITION_VERSION = NetworkDefinition.apiVersion;

/** What selects the operator's pods. */
export const SELECTOR = { [Label.name]: NAME } as const;
