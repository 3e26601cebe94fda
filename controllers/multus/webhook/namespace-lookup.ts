import type { KubernetesClient } from "../../../kubernetes/client";
import { type Rate, RateLimiter } from "../../../kubernetes/rate-limiter";
import { resources } from "../../../kubernetes/resources";
import type { Store } from "../../../kubernetes/store";
import type { NamespaceObject } from "../../../kubernetes/types";
import type { Clock } from "../../../process/clock";
import { HttpError } from "../../../system/http/server";
import { type Namespace, namespaceOf } from "../namespace";
import type { PodNamespace } from "./review";

/** Less than the API server's timeout for a review. */
const DEADLINE_MS = 4_000;
/** Every client in the cluster can ask for namespaces that do not exist. */
const LOOKUPS: Rate = { perSecond: 5, burst: 60 };

interface LookupDeps {
  readonly clock: Pick<Clock, "now" | "sleep">;
  readonly client: Pick<KubernetesClient, "find">;
  readonly namespaces: Pick<Store<NamespaceObject, Namespace>, "get">;
}

/** Finds the namespaces of reviews. */
export class NamespaceLookup {
  private readonly limiter: RateLimiter;

  constructor(private readonly deps: LookupDeps) {
    this.limiter = new RateLimiter(LOOKUPS, deps.clock);
  }

  /**
   * The namespace as the watch has reported it; it may not have reported a new one yet, which is read from the API
   * server. Two reviews do not share a lookup: it may have begun before their namespace existed.
   * @throws HttpError if too many are read; what reading throws
   */
  async find(name: string): Promise<PodNamespace> {
    const known = this.deps.namespaces.get(name);
    if (known !== undefined) return known;
    // The API server retries after an answer with `Retry-After`; eventually the failure policy decides.
    if (this.limiter.waitMs() > 0) {
      throw new HttpError(503, "too many reviews of unknown namespaces: ask again", { "retry-after": "1" });
    }
    this.limiter.take();
    const found = await this.deps.client.find(resources.namespaces, { name }, { deadlineMs: DEADLINE_MS });
    return found === undefined ? { name, annotations: {} } : namespaceOf(found);
  }
}
