/** The API server as an installer meets it. */
import { type Clock, EPOCH } from "./clock";
import { type End, type Request, requests, respond } from "./network";

/** How it answers everything. */
export type Mood = "up" | "slow" | "silent" | "down" | 401 | 403 | 429 | 500;

export const NAMESPACE = "linkerd-cni";
const DAEMON_SET = "linkerd-cni";

const ANSWER_MS = 2;
const SLOW_MS = 1_500;
/** For how long API servers remember an accepted token. */
const REMEMBERED_MS = 10_000;
const TOKEN_SECONDS = 3_600;

const absent = (kind: string, name: string) => ({ kind: "Status", reason: "NotFound", details: { kind, name } });

export class ApiServer {
  mood: Mood = "up";
  daemonSet: "there" | "deleting" | "deleted" | "elsewhere" = "there";
  namespace: "there" | "deleting" | "deleted" = "there";
  /** The container runtime, as the kubelet reports it. */
  runtime = "";
  /** The pods of the DaemonSet: whether each is being deleted. */
  readonly pods = new Map<string, "there" | "deleting">();
  private hasRoles = true;
  private accountsUntil = Number.POSITIVE_INFINITY;
  private minted = 0;

  constructor(private readonly clock: Clock) {}

  /** Whether it answers as usual. */
  get isUp(): boolean {
    return this.mood === "up" && this.hasRoles;
  }

  /** As `helm uninstall`: the DaemonSet, then role bindings, then service accounts. */
  uninstall(): void {
    this.daemonSet = "deleted";
    for (const pod of this.pods.keys()) this.pods.set(pod, "deleting");
    this.clock.set(() => {
      this.hasRoles = false;
    }, 300);
    this.accountsUntil = this.clock.now + 600 + REMEMBERED_MS;
  }

  /** Serves a connection. */
  readonly serve = (): ((bytes: Uint8Array | undefined, end: End) => void) =>
    requests((request, end) => {
      const answer = () => {
        if (this.mood === "silent" || this.mood === "down") return;
        const [status, body] = this.answer(request);
        respond(end, status, JSON.stringify(body));
      };
      this.clock.set(answer, this.mood === "slow" ? SLOW_MS : ANSWER_MS);
    });

  private answer({ method, path: target, token }: Request): readonly [status: number, body: object] {
    if (typeof this.mood === "number") return [this.mood, { kind: "Status", code: this.mood }];
    if (this.clock.now > this.accountsUntil || !this.isKnown(token ?? "")) return [401, { kind: "Status", code: 401 }];
    if (!this.hasRoles) return [403, { kind: "Status", code: 403 }];
    const [path = ""] = target.split("?");
    if (method === "POST" && path.endsWith("/token")) return [201, { status: { token: this.mint() } }];
    const [, kind = "", name = ""] = /\/(namespaces|nodes|pods|daemonsets)\/([^/]+)$/.exec(path) ?? [];
    const object = this.object(kind, name);
    return object === undefined ? [404, absent(kind, name)] : [200, object];
  }

  private object(kind: string, name: string): object | undefined {
    switch (kind) {
      case "nodes":
        return { metadata: { name, labels: {} }, status: { nodeInfo: { containerRuntimeVersion: this.runtime } } };
      case "namespaces":
        return this.namespace === "deleted" ? undefined : { metadata: { name, ...deletion(this.namespace) } };
      case "pods": {
        const pod = this.pods.get(name);
        const owners = [{ kind: "DaemonSet", name: DAEMON_SET }];
        return pod && { metadata: { name, namespace: NAMESPACE, ownerReferences: owners, ...deletion(pod) } };
      }
      case "daemonsets": {
        if (this.daemonSet === "deleted") return undefined;
        const containers = [{ name: "install-cni", env: [{ name: "HEALTH_PORT", value: "9990" }] }];
        const where = this.daemonSet === "elsewhere" ? { nodeSelector: { elsewhere: "true" } } : {};
        return {
          metadata: { name, ...deletion(this.daemonSet) },
          spec: { template: { spec: { containers, ...where } } },
        };
      }
      default:
        return {};
    }
  }

  /** A pod's own token ends with the pod. */
  private isKnown(token: string): boolean {
    const [, pod] = /^token-of-(\S+)$/.exec(token) ?? [];
    return pod === undefined || this.pods.has(pod);
  }

  private mint(): string {
    const issuedAt = Math.floor((EPOCH + this.clock.now) / 1000);
    const claims = {
      sub: `system:serviceaccount:${NAMESPACE}:plugin`,
      iat: issuedAt,
      exp: issuedAt + TOKEN_SECONDS,
    };
    return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${++this.minted}`;
  }
}

const deletion = (state: string) => (state === "deleting" ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {});
