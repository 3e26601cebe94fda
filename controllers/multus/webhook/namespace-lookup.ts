import type { KubernetesClient } from "../../../kubernetes/client";
import { resources } from "../../../kubernetes/resources";
import type { Store } from "../../../kubernetes/store";
import type { NamespaceObject } from "../../../kubernetes/types";
import { HttpError } from "../../../system/http/server";
import { type Namespace, namespaceOf } from "../namespace";
import type { PodNamespace } from "./annotate";

/** Less than the API server's timeout for a review. */
const DEADLINE_MS = 4_000;
/** Anybody can ask for namespaces that do not exist. */
const MOST_LOOKUPS = 64;

interface LookupDeps {
  readonly client: Pick<KubernetesClient, "find">;
  readonly namespaces: Pick<Store<NamespaceObject, Namespace>, "get">;
}

/** Finds the namespaces of reviews. */
export class NamespaceLookup {
  private lookups = 0;

  constructor(private readonly deps: LookupDeps) {}

  /**
   * The namespace as the watch has reported it; it may not have reported a new one yet, which is read from the API
   * server. Two reviews do not share a lookup: it may have begun before their namespace existed.
   * @throws HttpError if too many are being read; what reading throws
   */
  async find(name: string): Promise<PodNamespace> {
    const known = this.deps.namespaces.get(name);
    if (known !== undefined) return known;
    // The API server retries after an answer with `Retry-After`; eventually the failure policy decides.
    if (this.lookups >= MOST_LOOKUPS) {
      throw new HttpError(503, "too many reviews of unknown namespaces at once: ask again", { "retry-after": "1" });
    }
    this.lookups += 1;
    try {
      const found = await this.deps.client.find(resources.namespaces, { name }, { deadlineMs: DEADLINE_MS });
      return found === undefined ? { name, annotations: {} } : namespaceOf(found);
    } finally {
      this.lookups -= 1;
    }
  }
}
