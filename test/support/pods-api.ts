/** An API server for pods, over real TLS: lists, watches, deletes and Events as Kubernetes does them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ApiServer } from "../../kubernetes/api-server";
import { ApiStub, json } from "./api-server";

export interface PodLike {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly object[];
  };
  readonly spec: { readonly nodeName: string } & Readonly<Record<string, unknown>>;
  readonly status?: { readonly phase?: string } & Readonly<Record<string, unknown>>;
}

interface PublishedEvent {
  readonly reason: string;
  readonly action: string;
  readonly type: string;
  readonly note: string;
  readonly eventTime: string;
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly creationTimestamp?: string };
  readonly regarding: { readonly name: string; readonly uid: string; readonly namespace: string };
}

interface Change {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: PodLike;
}

interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string };
}

interface Deletion {
  readonly name: string;
  readonly uid: string;
  readonly body: DeleteOptions;
}

/** Lists of one namespace. */
const NAMESPACED = /^\/(?:api\/v1|apis\/events\.k8s\.io\/v1)\/namespaces\/([^/]+)\/(pods|events)$/;

const failure = (code: number, reason: string) => ({
  kind: "Status",
  status: "Failure",
  code,
  reason,
  message: reason,
});

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

/** Selection of a query; supports only the selectors that are used here. */
function selects(query: URLSearchParams, { metadata, spec, status }: PodLike): boolean {
  const label = query.get("labelSelector");
  const fields = query.get("fieldSelector") ?? "";
  const [, node = spec.nodeName] = /spec\.nodeName=([^,]+)/.exec(fields) ?? [];
  const [, phase] = /status\.phase!=([^,]+)/.exec(fields) ?? [];
  if (label !== null && metadata.labels?.[label] === undefined) return false;
  return node === spec.nodeName && (phase === undefined || phase !== status?.phase);
}

export class PodsApi {
  readonly pods = new Map<string, PodLike>();
  readonly events: PublishedEvent[] = [];
  readonly deletions: Deletion[] = [];
  /** Called after a pod was deleted, to act as a controller of pods. */
  afterDelete: (pod: PodLike) => void = () => undefined;
  /** Called before a deletion: status to answer with instead. */
  refuseDelete: (pod: PodLike) => number | undefined = () => undefined;
  /** Linkerd's injector; undefined if there is none. */
  injector: { readonly failurePolicy: string; readonly isReady: boolean } | undefined = {
    failurePolicy: "Ignore",
    isReady: true,
  };
  /** Whether this account may read the injector's webhook and its endpoints. */
  mayReadInjector = true;
  /** Answers nothing at all. */
  down = false;
  /** Answers no list or watch of pods. */
  isWatchDown = false;
  private readonly watchers = new Set<{ readonly query: URLSearchParams; readonly response: ServerResponse }>();
  private changes: Change[] = [];
  private version = 100;
  private oldest = 0;

  private constructor(readonly stub: ApiStub) {}

  static async start(): Promise<PodsApi> {
    const stub = await ApiStub.start(() => undefined);
    const api = new PodsApi(stub);
    stub.answer = (request, response) => void api.answer(request, response);
    return api;
  }

  get server(): ApiServer {
    return { host: "127.0.0.1", port: this.stub.port, ca: this.stub.ca, token: "secret" };
  }

  /** How often each kind of request came. */
  count(pattern: RegExp): number {
    return this.stub.requests.filter((path) => pattern.test(path)).length;
  }

  get watching(): number {
    return this.watchers.size;
  }

  put(pod: PodLike): void {
    const type = this.pods.has(key(pod)) ? "MODIFIED" : "ADDED";
    this.change(type, { ...pod, metadata: { creationTimestamp: new Date().toISOString(), ...pod.metadata } });
  }

  remove(pod: PodLike): void {
    this.change("DELETED", pod);
  }

  /** Forgets all changes until now: a watch of them gets 410. */
  compact(): void {
    this.oldest = this.version;
    this.changes = [];
  }

  bookmark(): void {
    const object = { kind: "Pod", metadata: { resourceVersion: String(this.version) } };
    for (const { response } of this.watchers) response.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  /** Cuts all connections. */
  cut(): void {
    for (const { response } of this.watchers) response.destroy();
    this.watchers.clear();
  }

  /** Tells all watchers that their resource version is too old, as the server does in the middle of a watch. */
  expire(): void {
    const line = `${JSON.stringify({ type: "ERROR", object: failure(410, "Expired") })}\n`;
    for (const { response } of this.watchers) response.end(line);
    this.watchers.clear();
    this.compact();
  }

  close(): void {
    this.stub.close();
  }

  private change(type: Change["type"], pod: PodLike): void {
    this.version += 1;
    const object = { ...pod, metadata: { ...pod.metadata, resourceVersion: String(this.version) } };
    if (type === "DELETED") this.pods.delete(key(pod));
    else this.pods.set(key(pod), object);
    const change: Change = { version: this.version, type, object };
    this.changes.push(change);
    for (const watcher of this.watchers) send(watcher, change);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.down) return void request.socket.destroy();
    const url = new URL(request.url ?? "", "https://api");
    const reply = (status: number, object: object) => json(status, object)(request, response);
    if (request.headers.authorization !== "Bearer secret") return reply(401, failure(401, "Unauthorized"));
    if (request.method === "POST") return reply(...this.create(await bodyOf(request)));
    if (request.method === "DELETE") return reply(...this.delete(url.pathname, JSON.parse(await bodyOf(request))));
    if (/webhookconfigurations$|\/endpointslices$/.test(url.pathname)) return reply(...this.readInjector(url));
    if (url.pathname === "/api/v1/pods" && this.isWatchDown) return void request.socket.destroy();
    if (url.pathname === "/api/v1/pods") return this.collection(url.searchParams, response, reply);
    const [, namespace, kind] = NAMESPACED.exec(url.pathname) ?? [];
    const all: readonly PodLike[] | readonly PublishedEvent[] = kind === "pods" ? [...this.pods.values()] : this.events;
    if (kind !== undefined)
      return reply(200, { items: all.filter(({ metadata }) => metadata.namespace === namespace) });
    if (/^\/api\/v1\/namespaces\/[^/]+$/.test(url.pathname)) return reply(200, { metadata: {} });
    reply(404, failure(404, "NotFound"));
  }

  private readInjector({ pathname, searchParams }: URL): [number, object] {
    if (!this.mayReadInjector) return [403, failure(403, "Forbidden")];
    const labels: Readonly<Record<string, string>> = {
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations":
        "linkerd.io/control-plane-component=proxy-injector",
      "/apis/discovery.k8s.io/v1/namespaces/linkerd/endpointslices":
        "kubernetes.io/service-name=linkerd-proxy-injector",
    };
    const { injector } = this;
    if (injector === undefined || searchParams.get("labelSelector") !== labels[pathname]) return [200, { items: [] }];
    const service = { namespace: "linkerd", name: "linkerd-proxy-injector" };
    const webhook = { name: "linkerd-proxy-injector.linkerd.io", clientConfig: { service } };
    const webhooks = [{ ...webhook, failurePolicy: injector.failurePolicy }];
    return [200, { items: [{ webhooks, endpoints: [{ conditions: { ready: injector.isReady } }] }] }];
  }

  private collection(query: URLSearchParams, response: ServerResponse, reply: (status: number, o: object) => void) {
    if (query.get("watch") === null) {
      const items = [...this.pods.values()].filter((pod) => selects(query, pod));
      return reply(200, { kind: "PodList", metadata: { resourceVersion: String(this.version) }, items });
    }
    const since = Number(query.get("resourceVersion"));
    if (since < this.oldest) return reply(410, failure(410, "Expired"));
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    const watcher = { query, response };
    for (const change of this.changes) if (change.version > since) send(watcher, change);
    this.watchers.add(watcher);
    response.on("close", () => this.watchers.delete(watcher));
  }

  private create(text: string): [number, object] {
    const event = JSON.parse(text) as PublishedEvent;
    const creationTimestamp = new Date().toISOString();
    this.events.push({ ...event, metadata: { ...event.metadata, creationTimestamp } });
    return [201, {}];
  }

  private delete(path: string, body: DeleteOptions): [number, object] {
    const [, namespace, name] = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/.exec(path) ?? [];
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) return [404, failure(404, "NotFound")];
    if (body.preconditions?.uid !== pod.metadata.uid) return [409, failure(409, "Conflict")];
    const refused = this.refuseDelete(pod);
    if (refused !== undefined) return [refused, failure(refused, "refused")];
    this.deletions.push({ name: pod.metadata.name, uid: pod.metadata.uid, body });
    this.remove(pod);
    this.afterDelete(pod);
    return [200, pod];
  }
}

const key = ({ metadata }: PodLike) => `${metadata.namespace}/${metadata.name}`;

function send(watcher: { query: URLSearchParams; response: ServerResponse }, { type, object }: Change): void {
  const selected = selects(watcher.query, object);
  // For a watcher, an object that is no longer selected was deleted.
  const told = selected || type === "ADDED" ? type : "DELETED";
  if (selected || type === "MODIFIED") watcher.response.write(`${JSON.stringify({ type: told, object })}\n`);
}
