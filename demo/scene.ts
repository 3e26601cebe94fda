import { pathOf, resources } from "../kubernetes/resources";
import { type Answer, json } from "../test/support/api-server";

/** Addresses of the server outside the pods, in the node's namespace. */
export const OUTSIDE = { 4: "10.99.0.1", 6: "fd99::1" } as const;
export type Family = keyof typeof OUTSIDE;

export const NAMESPACE = "shop";

/** The process that answers a connection, by the name that it sends. */
const outsideServer = (port: number) => `server:${port}`;
const app = (port: number) => `app:${port}`;
const INBOUND = "proxy inbound (4143)";
const OUTBOUND = "proxy outbound (4140)";

/** Listening ports, and the names in their answers. */
export type Listeners = Readonly<Record<number, string>>;
export const outsideListeners: Listeners = { 80: outsideServer(80), 3306: outsideServer(3306) };
export const podListeners: Listeners = { 4143: INBOUND, 4140: OUTBOUND, 8080: app(8080), 9090: app(9090) };

export interface DemoPod {
  readonly name: string;
  readonly containerId: string;
  readonly containers: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
}

const injected = {
  "linkerd.io/created-by": "linkerd/proxy-injector demo",
  "linkerd.io/proxy-version": "demo",
  "config.linkerd.io/skip-inbound-ports": "9090",
  "config.linkerd.io/skip-outbound-ports": "3306",
};
export const meshed: DemoPod = {
  name: "cart",
  containerId: "demo01",
  containers: ["app", "linkerd-proxy"],
  annotations: injected,
};
export const unmeshed: DemoPod = { name: "legacy", containerId: "demo02", containers: ["app"], annotations: {} };

/** The installer's token, which the API server requires. */
export const TOKEN = "demo-token";

/** The API server's answers: the pods and their namespace. */
export function answer(pods: readonly DemoPod[]): Answer {
  const objects = new Map<string, object>([
    [pathOf(resources.namespaces, { name: NAMESPACE }), { metadata: { name: NAMESPACE } }],
    ...pods.map(({ name, annotations, containers }): [string, object] => [
      pathOf(resources.pods, { namespace: NAMESPACE, name }),
      {
        metadata: { name, namespace: NAMESPACE, annotations },
        spec: { containers: containers.map((container) => ({ name: container })) },
      },
    ]),
  ]);
  return (request, response) => {
    const object = objects.get(request.url ?? "");
    const isKnown = request.headers.authorization === `Bearer ${TOKEN}`;
    const reply = isKnown
      ? json(object === undefined ? 404 : 200, object ?? {})
      : json(401, { kind: "Status", code: 401 });
    reply(request, response);
  };
}

/** One connection to try, and the expected answer. */
export interface Probe {
  readonly title: string;
  /** The pod it starts in; absent: the node. */
  readonly from?: string;
  /** A pod's name, `outside`, or `loopback`. */
  readonly to: string;
  readonly port: number;
  readonly family: Family;
  /** User that connects. @default 0 */
  readonly uid?: number;
  readonly expect: string;
}

/** Every probe of one address family; `proxyUid` is absent if the sandbox has only one user. */
function probesOf(family: Family, proxyUid: number | undefined): Probe[] {
  const ofPod = (pod: string, redirected: boolean): Probe[] => [
    { title: "inbound", to: pod, port: 8080, family, expect: redirected ? INBOUND : app(8080) },
    { title: "inbound, skipped port", to: pod, port: 9090, family, expect: app(9090) },
    {
      title: "outbound",
      from: pod,
      to: "outside",
      port: 80,
      family,
      expect: redirected ? OUTBOUND : outsideServer(80),
    },
    { title: "outbound, skipped port", from: pod, to: "outside", port: 3306, family, expect: outsideServer(3306) },
    { title: "loopback", from: pod, to: "loopback", port: 8080, family, expect: app(8080) },
  ];
  const proxy = { title: "outbound of the proxy", from: meshed.name, to: "outside", port: 80, family };
  return [
    ...ofPod(meshed.name, true),
    ...(proxyUid === undefined ? [] : [{ ...proxy, uid: proxyUid, expect: outsideServer(80) }]),
    ...ofPod(unmeshed.name, false),
  ];
}

/** Every probe, IPv4 first. */
export function probes(families: readonly Family[], proxyUid: number | undefined): Probe[] {
  return families.flatMap((family) => probesOf(family, proxyUid));
}
