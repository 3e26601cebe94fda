import type { ApiResponse, Transport } from "../../../kubernetes/client";

export const FIELD_MANAGER = "linkerd-multus-certificates";
export const CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

const DEADLINE_MS = 5_000;
const NOT_FOUND = 404;

interface Configuration {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig?: { readonly caBundle?: string };
  }[];
}

/** @throws where the response is not one of success */
export function succeeded(what: string, { status, body }: ApiResponse): void {
  if (status < 200 || status >= 300) throw new Error(`${what}: ${status}: ${body.slice(0, 300)}`);
}

/** The `caBundle` of every webhook in a MutatingWebhookConfiguration. */
export class CaBundle {
  private readonly path: string;

  constructor(
    private readonly send: Transport,
    private readonly name: string,
  ) {
    this.path = `${CONFIGURATIONS}/${name}`;
  }

  /**
   * Puts it right, and no other field; a configuration that is not there needs none.
   * @param bundle PEM in base64
   * @returns whether it was right before
   * @throws where it could not be read or written
   */
  async ensure(bundle: string): Promise<boolean> {
    const found = await this.send({ path: this.path, deadlineMs: DEADLINE_MS });
    if (found.status === NOT_FOUND) return true;
    succeeded(`webhook configuration ${this.name}`, found);
    const { webhooks = [] } = JSON.parse(found.body) as Configuration;
    if (webhooks.every(({ clientConfig }) => clientConfig?.caBundle === bundle)) return true;
    const written = await this.send({
      method: "PATCH",
      path: `${this.path}?fieldManager=${FIELD_MANAGER}&force=true`,
      contentType: "application/apply-patch+yaml",
      body: {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "MutatingWebhookConfiguration",
        metadata: { name: this.name },
        webhooks: webhooks.map(({ name }) => ({ name, clientConfig: { caBundle: bundle } })),
      },
      deadlineMs: DEADLINE_MS,
    });
    succeeded(`caBundle of webhook configuration ${this.name}`, written);
    return false;
  }
}
