import type { Log } from "../cni/log";
import type { ApiServer, Transport } from "../kubernetes/client";
import { readClaims, renewalTime } from "../kubernetes/service-account-token";
import type { Counter } from "./metrics";

/** The service account of the plugin, which may do less than the installer's own. */
export interface PluginAccount {
  readonly namespace: string;
  readonly name: string;
  /** Life that is asked for; the API server may give less. */
  readonly seconds: number;
}

export type Access = ApiServer & { readonly token: string; readonly ca: string };

interface Tools {
  /** The installer's own access, read anew. @throws where the files are missing */
  readonly own: () => Access;
  /** Absent: the plugin uses the installer's own token. */
  readonly account?: PluginAccount;
  readonly transport: (access: Access) => Transport & { close(): void };
  readonly log: Log;
  readonly renewals: Counter;
}

type Outcome = { readonly token: string } | { readonly refused: string } | { readonly silent: string };

const DEADLINE_MS = 4_000;
const RETRY_SILENT_MS = 5_000;
const RETRY_REFUSED_MS = 60_000;

/** The token for the plugin: one of its own account where the API server gives it, else the installer's. */
export class Credentials {
  private minted: string | undefined;
  private retryAt = 0;
  private said = "";

  /** `known` is the token that lies on the node from before. */
  constructor(
    private readonly tools: Tools,
    known: string | undefined,
  ) {
    if (known !== undefined && this.isOfAccount(known)) this.minted = known;
  }

  /** What the kubeconfig should hold now. `now` is the wall clock. @throws where there is no token at all */
  current(now: number): Access {
    const own = this.tools.own();
    return this.isAlive(now) && this.minted !== undefined ? { ...own, token: this.minted } : own;
  }

  /** The API server does not accept the token any more. */
  rejected(): void {
    this.minted = undefined;
    this.retryAt = 0;
  }

  /** Asks for a token where one is due. Never rejects. Tells whether there is a new one. */
  async renew(now: number): Promise<boolean> {
    const { account, renewals } = this.tools;
    if (account === undefined || !this.isDue(now)) return false;
    const outcome = await this.request(account);
    renewals.add(Object.keys(outcome)[0] ?? "");
    if ("token" in outcome) {
      this.minted = outcome.token;
      this.say(`the plugin has a token of service account ${account.namespace}/${account.name}`, "info");
      return true;
    }
    const refused = "refused" in outcome;
    this.retryAt = now + (refused ? RETRY_REFUSED_MS : RETRY_SILENT_MS);
    const why = "refused" in outcome ? outcome.refused : outcome.silent;
    const meanwhile = this.isAlive(now) ? "its last token" : "the installer's own token";
    this.say(`no token of ${account.namespace}/${account.name} for the plugin (${why}): it uses ${meanwhile}`, "warn");
    return false;
  }

  private isOfAccount(token: string): boolean {
    const { account } = this.tools;
    const subject = `system:serviceaccount:${account?.namespace}:${account?.name}`;
    return account !== undefined && readClaims(token)?.subject === subject;
  }

  private isAlive(now: number): boolean {
    const claims = this.minted === undefined ? undefined : readClaims(this.minted);
    return claims !== undefined && now < claims.expiresAt;
  }

  private isDue(now: number): boolean {
    const claims = this.minted === undefined ? undefined : readClaims(this.minted);
    return now >= this.retryAt && (claims === undefined || now >= renewalTime(claims));
  }

  private async request({ namespace, name, seconds }: PluginAccount): Promise<Outcome> {
    const body = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: seconds },
    };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    try {
      const transport = this.tools.transport(this.tools.own());
      const answer = await transport({ method: "POST", path, body, deadlineMs: DEADLINE_MS });
      transport.close();
      return outcomeOf(answer.status, answer.body);
    } catch (error) {
      return { silent: error instanceof Error ? error.message : String(error) };
    }
  }

  private say(message: string, level: "info" | "warn"): void {
    if (message !== this.said) this.tools.log[level](message);
    this.said = message;
  }
}

function outcomeOf(status: number, body: string): Outcome {
  if (status >= 500 || status === 429) return { silent: `the API server answers ${status}` };
  if (status !== 200 && status !== 201) return { refused: `the API server answers ${status}` };
  const { status: given } = JSON.parse(body) as { status?: { token?: string } };
  return typeof given?.token === "string" ? { token: given.token } : { refused: "the answer holds no token" };
}
