/** The name of the operator's resources. */
export const NAME = "linkerd-multus";
/** The Service that the API server calls. */
export const SERVICE = `${NAME}-webhook`;
/** The Secret with the webhook's certificate that the operator makes. */
export const OWN_SECRET = `${SERVICE}-tls`;
/** The Secret with the one that cert-manager makes; a name of its own, so that neither takes the other's for its own. */
export const ISSUED_SECRET = `${SERVICE}-certificate`;
/** The authority that signs it unless an issuer is given: a Certificate of cert-manager's, and its Secret. */
export const AUTHORITY = `${SERVICE}-ca`;
/** The issuer by which this authority signs itself. */
export const ROOT = `${SERVICE}-root`;
/** The path at which the webhook answers. */
export const WEBHOOK_PATH = "/annotate-multus-v1-pod";

/** What selects the operator's pods. */
export const SELECTOR = { "app.kubernetes.io/name": NAME } as const;
