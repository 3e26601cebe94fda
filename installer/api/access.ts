import type { ApiServer } from "../../kubernetes/api-server";
import type { Transport } from "../../kubernetes/transport";

/** An API server, and who to be there. */
export type Access = ApiServer & { readonly token: string; readonly ca: string };

/** Whether the API server accepts what the kubeconfig holds; an API server that is away says nothing about it. */
export type Verdict = { readonly kind: "accepted" | "unknown" } | { readonly kind: "refused"; readonly why: string };

const REMEMBERED_MS = 30_000;
const DEADLINE_MS = 2_500;

interface Deps {
  readonly transport: (access: Access) => Transport & { close(): void };
  /** What the plugin itself asks for: a pod. */
  readonly path: string;
}

/** Asks as the plugin would, at most once in half a minute for one token. */
export class AccessCheck {
  private last: { readonly token: string; readonly at: number; readonly verdict: Promise<Verdict> } | undefined;

  constructor(private readonly deps: Deps) {}

  check(access: Access, now: number): Promise<Verdict> {
    const { last } = this;
    if (last !== undefined && last.token === access.token && now - last.at < REMEMBERED_MS) return last.verdict;
    const verdict = this.ask(access);
    this.last = { token: access.token, at: now, verdict };
    return verdict;
  }

  private async ask(access: Access): Promise<Verdict> {
    const transport = this.deps.transport(access);
    try {
      const { status } = await transport({ path: this.deps.path, deadlineMs: DEADLINE_MS });
      if (status === 401)
        return { kind: "refused", why: "the API server does not accept the kubeconfig's token (401)" };
      if (status === 403) return { kind: "refused", why: "the kubeconfig's account may not get pods (403)" };
      return { kind: status < 500 ? "accepted" : "unknown" };
    } catch {
      return { kind: "unknown" };
    } finally {
      transport.close();
    }
  }
}
