/** The name of the operator's resources. */
export const NAME = "linkerd-multus";
/** The Service that the API server calls. */
export const SERVICE = `${NAME}-webhook`;
/** The Secret with the webhook's certificate that the operator makes. */
export const OWN_SECRET = `${SERVICE}-tls`;
/** The Secret with the one that cert-manager makes; a name of its own, so that neither takes the other's for its own. */
export const ISSUED_SECRET = `${SERVICE}-certificate`;
/** The path at which the webhook answers. */
export const WEBHOOK_PATH = "/annotate-multus-v1-pod";

/** What selects the operator's pods. */
export const SELECTOR = { "app.kubernetes.io/name": NAME } as const;
