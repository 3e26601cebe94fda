import type { Transport } from "../../../kubernetes/client";
import type { ObjectMeta } from "../../../kubernetes/types";
import { succeeded } from "./ca-bundle";

/** A Secret as it was read. */
export interface SecretObject {
  readonly metadata?: ObjectMeta;
  readonly data?: Readonly<Record<string, string>>;
}

const DEADLINE_MS = 5_000;
const NOT_FOUND = 404;
const CONFLICT = 409;

/** One Secret, written only by whoever has read what is in it. */
export class SecretStore {
  private readonly collection: string;
  private readonly path: string;

  constructor(
    private readonly send: Transport,
    private readonly namespace: string,
    private readonly name: string,
  ) {
    this.collection = `/api/v1/namespaces/${namespace}/secrets`;
    this.path = `${this.collection}/${name}`;
  }

  get place(): string {
    return `Secret ${this.namespace}/${this.name}`;
  }

  /** Undefined where there is none. @throws where it cannot be told */
  async read(): Promise<SecretObject | undefined> {
    const response = await this.send({ path: this.path, deadlineMs: DEADLINE_MS });
    if (response.status === NOT_FOUND) return undefined;
    succeeded(this.place, response);
    return JSON.parse(response.body) as SecretObject;
  }

  /**
   * Writes `data` where the Secret is still the one that was read; null removes a member.
   * @returns whether it was
   * @throws where it cannot be written
   */
  async write(before: SecretObject | undefined, data: Readonly<Record<string, string | null>>): Promise<boolean> {
    const response = await this.send(before === undefined ? this.creation(data) : this.change(before, data));
    // Somebody else was quicker, or deleted it.
    if (response.status === CONFLICT || (before !== undefined && response.status === NOT_FOUND)) return false;
    succeeded(this.place, response);
    return true;
  }

  private creation(data: Readonly<Record<string, string | null>>) {
    const { name, namespace } = this;
    const labels = { "app.kubernetes.io/managed-by": "linkerd-multus" };
    const body = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace, labels },
      type: "kubernetes.io/tls",
      data: Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null)),
    };
    return { method: "POST", path: this.collection, body, deadlineMs: DEADLINE_MS } as const;
  }

  private change({ metadata }: SecretObject, data: Readonly<Record<string, string | null>>) {
    const { resourceVersion, uid } = metadata ?? {};
    const contentType = "application/merge-patch+json";
    const body = { metadata: { resourceVersion, uid }, data };
    return { method: "PATCH", path: this.path, contentType, body, deadlineMs: DEADLINE_MS } as const;
  }
}
