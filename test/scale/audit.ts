/** Requests as the API server's own audit log has them. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

/** Audit record of a request: its time, its user, and the answer; of our accounts, so that the log stays small. */
export const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts:linkerd-cni"] }, { level: "None" }],
};

interface AuditEvent {
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number };
}

/** A request of one of ours. */
export interface Request {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Its account. */
  readonly account: string;
  /** Verb and resource, and whether the API server may answer from memory in place of asking etcd. */
  readonly what: string;
  readonly uri: string;
  readonly code: number;
}

const FROM_MEMORY = /[?&]resourceVersion=\d/;
const ACCOUNT = /^system:serviceaccount:linkerd-cni:(.+)$/;

/** Reads all requests of the service accounts in namespace linkerd-cni. */
export async function readRequests(path: string): Promise<readonly Request[]> {
  const requests: Request[] = [];
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const event = JSON.parse(line) as AuditEvent;
    const [, account] = ACCOUNT.exec(event.user.username) ?? [];
    // Of a watch, its beginning counts; it ends with another line.
    const isWatch = event.verb === "watch";
    if (account === undefined || isWatch !== (event.stage === "ResponseStarted")) continue;
    const { resource = "", subresource } = event.objectRef ?? {};
    const source = !isWatch && FROM_MEMORY.test(event.requestURI) ? " from memory" : "";
    requests.push({
      at: Date.parse(event.requestReceivedTimestamp),
      account,
      what: `${event.verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${source}`,
      uri: event.requestURI,
      code: event.responseStatus?.code ?? 0,
    });
  }
  return requests.sort((one, other) => one.at - other.at);
}

/** Requests of ours for lists, or watches, of more than one node's objects. */
export function tooMuch(requests: readonly Request[]): readonly string[] {
  const wide = requests.filter(({ what, uri }) => /^(list|watch) /.test(what) && !uri.includes("spec.nodeName%3D"));
  return [...new Set(wide.map(({ what, uri }) => `${what}: ${uri}`))];
}

/** The most requests that came within one second. */
export function peakPerSecond(requests: readonly Request[]): number {
  const seconds = new Map<number, number>();
  for (const { at } of requests) seconds.set(Math.floor(at / 1000), (seconds.get(Math.floor(at / 1000)) ?? 0) + 1);
  return Math.max(0, ...seconds.values());
}

/** How many requests there were of each kind, the most frequent first. */
export function byKind(requests: readonly Request[]): readonly (readonly [string, number])[] {
  const kinds = new Map<string, number>();
  for (const { account, what, code } of requests) {
    const kind = `${what}${code >= 400 ? ` (${code})` : ""} as ${account}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return [...kinds].sort(([, one], [, other]) => other - one);
}
