import { reasonOf } from "../../cni/errors";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import { isTemporary } from "../../kubernetes/errors";
import { readClaims, renewalTime, type TokenClaims } from "../../kubernetes/service-account-token";
import type { Transport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import type { Counter } from "../../process/metrics";
import { fromBase64, textOf } from "../../system/bytes";
import type { Access, Verdict } from "./access";

/** Decodes base64url text. */
const decoded = (text: string) => textOf(fromBase64(text.replaceAll("-", "+").replaceAll("_", "/")));

/** The service account of the plugin, which has fewer permissions than the installer's. */
export interface PluginAccount {
  readonly namespace: string;
  readonly name: string;
  /** Requested lifetime; the API server may grant less. */
  readonly seconds: number;
  /** The node that the token is bound to: it becomes invalid with the node. Absent: limited only by its expiry. */
  readonly node?: string;
}

interface CredentialsDeps {
  /** The installer's own access, read from its files. @throws if the files are missing */
  readonly own: () => Access;
  /** Absent: the plugin uses the installer's own token. */
  readonly account?: PluginAccount;
  readonly transport: (access: Access) => Transport;
  /** Whether the API server accepts it for the plugin. */
  readonly verify: (access: Access) => Promise<Verdict>;
  readonly log: Log;
  readonly renewals: Counter<"result">;
  readonly clock: Pick<Clock, "now" | "date" | "random">;
}

/** A token and its claims, with times on the monotonic clock. */
interface Minted {
  readonly token: string;
  readonly claims: TokenClaims;
}

type MintOutcome = Minted | { readonly refused: string } | { readonly silent: string };

const DEADLINE_MS = 4_000;
const SILENT: BackoffPolicy = { firstMs: 5_000, longestMs: 60_000 };
const RETRY_REFUSED_MS = 60_000;

/** The token for the plugin: one of its own account if the API server issues it, else the installer's. */
export class Credentials {
  private minted: Minted | undefined;
  private retryAt = Number.NEGATIVE_INFINITY;
  private said = "";
  /** Nodes that got their tokens at the same time renew them at different times. */
  private readonly chance: number;
  /** Requests in a row that the API server did not answer. */
  private readonly silent: Backoff;

  /** `known` is the token already on the node. */
  constructor(
    private readonly deps: CredentialsDeps,
    known: string | undefined,
  ) {
    this.chance = deps.clock.random();
    this.silent = new Backoff(SILENT, deps.clock.random);
    const claims = known === undefined ? undefined : readClaims(known, decoded);
    if (known !== undefined && claims?.subject === this.subject())
      this.minted = { token: known, claims: this.told(claims) };
  }

  /** Converts the claims' wall-clock times to the monotonic clock. */
  private told(claims: TokenClaims): TokenClaims {
    const { clock } = this.deps;
    const ahead = clock.date().getTime() - clock.now();
    return { ...claims, issuedAt: claims.issuedAt - ahead, expiresAt: claims.expiresAt - ahead };
  }

  /** The access that the kubeconfig should give now. @throws if there is no token */
  current(): Access {
    return this.ofPlugin() ?? this.deps.own();
  }

  /** Access by a token of the plugin's own account; undefined if it has no account. @throws if there is no token */
  ofPlugin(): Access | undefined {
    return this.isAlive() && this.minted !== undefined ? { ...this.deps.own(), token: this.minted.token } : undefined;
  }

  /** Checks whether the API server accepts the plugin's token; the next renewal replaces a refused token. */
  async verify(): Promise<Verdict> {
    const access = this.current();
    const verdict = await this.deps.verify(access);
    // The token may have changed meanwhile.
    if (verdict.kind === "refused" && this.minted?.token === access.token) {
      this.minted = undefined;
      this.retryAt = Number.NEGATIVE_INFINITY;
    }
    return verdict;
  }

  /**
   * Checks whether the credentials can keep a node: the API server accepts the plugin, and its next token can be
   * requested.
   */
  async verifyToKeep(): Promise<Verdict> {
    const verdict = await this.verify();
    if (verdict.kind !== "accepted" || this.ofPlugin() === undefined) return verdict;
    const own = await this.deps.verify(this.deps.own());
    if (own.kind !== "refused") return own;
    if (own.isUnauthorized !== true) return verdict;
    return { ...own, why: "the API server does not accept the installer's own token (401), which renews the plugin's" };
  }

  /** Requests a token if one is due. Never rejects. Returns whether there is a new one. */
  async renew(): Promise<boolean> {
    const { account, renewals } = this.deps;
    if (account === undefined || !this.isDue()) return false;
    const outcome = await this.request(account);
    renewals.inc({ result: Object.keys(outcome)[0] ?? "" });
    if (!("silent" in outcome)) this.silent.reset();
    if ("token" in outcome) {
      this.minted = received(outcome, this.deps.clock.now());
      this.say(`the plugin has a token of service account ${account.namespace}/${account.name}`, "info");
      return true;
    }
    const refused = "refused" in outcome;
    this.retryAt = this.deps.clock.now() + (refused ? RETRY_REFUSED_MS : this.silent.next());
    const why = "refused" in outcome ? outcome.refused : outcome.silent;
    const meanwhile = this.isAlive() ? "its last token" : "the installer's own token";
    this.say(`no token of ${account.namespace}/${account.name} for the plugin (${why}): it uses ${meanwhile}`, "warn");
    return false;
  }

  /** The account's user name in a token. */
  private subject(): string {
    const { account } = this.deps;
    return `system:serviceaccount:${account?.namespace}:${account?.name}`;
  }

  private isAlive(): boolean {
    return this.minted !== undefined && this.deps.clock.now() < this.minted.claims.expiresAt;
  }

  private isDue(): boolean {
    const now = this.deps.clock.now();
    return now >= this.retryAt && (this.minted === undefined || now >= renewalTime(this.minted.claims, this.chance));
  }

  /** Requests a token that the API server accepts for the plugin. */
  private async request(account: PluginAccount): Promise<MintOutcome> {
    try {
      const own = this.deps.own();
      const outcome = await this.ask(account, own);
      if (!("token" in outcome)) return outcome;
      const verdict = await this.deps.verify({ ...own, token: outcome.token });
      return verdict.kind === "refused" ? { refused: verdict.why } : outcome;
    } catch (error) {
      return { silent: reasonOf(error) };
    }
  }

  private async ask({ namespace, name, seconds, node }: PluginAccount, own: Access): Promise<MintOutcome> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const transport = this.deps.transport(own);
    const ask = (body: object) => transport({ method: "POST", path, body, deadlineMs: DEADLINE_MS });
    const bound = await ask(tokenRequest(seconds, node));
    // Kubernetes before 1.31 does not bind tokens to nodes; it binds tokens to a pod only for the pod's own account.
    const answer = node !== undefined && UNBINDABLE.includes(bound.status) ? await ask(tokenRequest(seconds)) : bound;
    return outcomeOf(answer.status, answer.body);
  }

  private say(message: string, level: "info" | "warn"): void {
    if (message !== this.said) this.deps.log[level](message);
    this.said = message;
  }
}

/** Its lifetime begins when it is received: this machine's clock may differ from the API server's. */
function received({ token, claims }: Minted, now: number): Minted {
  const expiresAt = now + (claims.expiresAt - claims.issuedAt);
  return { token, claims: { ...claims, issuedAt: now, expiresAt } };
}

function tokenRequest(expirationSeconds: number, node?: string): object {
  const bound = node === undefined ? {} : { boundObjectRef: { apiVersion: "v1", kind: "Node", name: node } };
  const spec = { expirationSeconds, ...bound };
  return { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
}

/** The answer of an API server that cannot bind tokens to nodes. */
const UNBINDABLE = [400, 422];

function outcomeOf(status: number, body: string): MintOutcome {
  if (isTemporary(status)) return { silent: `the API server answers ${status}` };
  if (status !== 200 && status !== 201) return { refused: `the API server answers ${status}` };
  const { status: given } = JSON.parse(body) as { status?: { token?: string } };
  const claims = readClaims(given?.token ?? "", decoded);
  return given?.token === undefined || claims === undefined
    ? { refused: "the answer has no token with an expiry" }
    : { token: given.token, claims };
}
