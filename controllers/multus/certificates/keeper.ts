import type { Log } from "../../../cni/log";
import type { Transport } from "../../../kubernetes/client";
import type { Clock } from "../../clock";
import { Naps } from "../../naps";
import { CaBundle } from "./ca-bundle";
import type { Credential } from "./credential";
import { issue } from "./issue";
import { plan, type Step } from "./plan";
import { type SecretObject, SecretStore } from "./secret";
import type { Shown } from "./shown";
import { decodeState, encodeState, encodeTrusted, type State } from "./state";

export interface KeeperOptions {
  /** Where the Secret and the webhook's Service are. */
  readonly namespace: string;
  readonly secret: string;
  readonly service: string;
  /** Name of the MutatingWebhookConfiguration. */
  readonly configuration: string;
  /** How long a certificate is valid, in milliseconds. */
  readonly validMs: number;
}

interface Tools {
  readonly send: Transport;
  readonly shown: Shown<Credential>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Even where nothing is told about a change, it is looked for. */
const LOOK_EVERY_MS = 60_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
const LONGEST_SETTLE_MS = 5 * 60_000;
const SETTLES_IN_A_LIFE = 60;

/** The name by which the API server calls a Service. */
const nameOf = (service: string, namespace: string) => `${service}.${namespace}.svc`;

const SAID: Readonly<Record<Exclude<Step["kind"], "wait">, string>> = {
  issue: "made a certificate",
  switch: "the next certificate is served from now on",
  forget: "the old authority is trusted no more",
};

/**
 * Makes and rotates the webhook's certificate in a Secret, and keeps what the API server trusts up to date. It runs in
 * every replica: whoever writes first has done it for all, and the others go by the Secret.
 */
export class CertificateKeeper {
  private readonly secret: SecretStore;
  private readonly bundle: CaBundle;
  private readonly name: string;
  private readonly settleMs: number;
  private readonly naps: Naps;
  private failures = 0;
  private problem = "";
  /** What was served and trusted when it was last looked at, and since when. */
  private settled = { what: "", since: 0 };
  private trusted: readonly string[] = [];

  constructor(
    private readonly options: KeeperOptions,
    private readonly tools: Tools,
  ) {
    this.naps = new Naps(tools.clock, tools.signal);
    this.secret = new SecretStore(tools.send, options.namespace, options.secret);
    this.bundle = new CaBundle(tools.send, options.configuration);
    this.name = nameOf(options.service, options.namespace);
    this.settleMs = Math.min(LONGEST_SETTLE_MS, options.validMs / SETTLES_IN_A_LIFE);
  }

  /** The Secret or the configuration may have changed. */
  wake(): void {
    this.naps.wake();
  }

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    await this.naps.run(() => this.attempt());
  }

  /** @returns milliseconds until the next attempt */
  private async attempt(): Promise<number> {
    const { clock, log } = this.tools;
    try {
      const pause = await this.step();
      this.failures = 0;
      this.problem = "";
      return Math.min(pause, LOOK_EVERY_MS);
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.problem) log.warn(`the webhook's certificate cannot be looked after: ${message}`);
      this.problem = message;
      const pause = Math.min(FIRST_RETRY_MS * 2 ** this.failures, LONGEST_RETRY_MS);
      this.failures += 1;
      return pause * (0.5 + clock.random() / 2);
    }
  }

  /** Looks at everything anew and does what comes next. @returns milliseconds until the step after it */
  private async step(): Promise<number> {
    const { clock, shown } = this.tools;
    const found = await this.secret.read();
    const state = this.decode(found);
    if (state !== undefined) {
      shown.show(state.serving);
      await this.trust(state);
    }
    const settledMs = clock.now() - this.settled.since;
    const step = plan(state, shown.current, { now: clock.date().getTime(), settledMs, settleMs: this.settleMs });
    if (step.kind === "wait") return step.ms;
    const next = await this.after(step, state);
    // Where somebody else was quicker, that is what counts.
    if (await this.secret.write(found, encodeState(next))) this.tools.log.info(SAID[step.kind]);
    return 0;
  }

  private decode(found: SecretObject | undefined): State | undefined {
    if (found === undefined) return undefined;
    try {
      return decodeState(found.data ?? {}, this.name);
    } catch (error) {
      this.tools.log.warn(`${this.secret.place} is of no use and is made anew: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** Has clients trust what the Secret says, and notes how long they have. */
  private async trust({ serving, trusted }: State): Promise<void> {
    const bundle = encodeTrusted(trusted);
    const wasRight = await this.bundle.ensure(bundle);
    const what = serving.cert + bundle;
    this.trusted = trusted;
    if (!wasRight || this.settled.what !== what) this.settled = { what, since: this.tools.clock.now() };
  }

  /** What the Secret holds after a step. */
  private async after(step: Exclude<Step, { kind: "wait" }>, state: State | undefined) {
    if (step.kind === "issue") {
      const made = await issue(
        [this.name, `${this.name}.cluster.local`],
        this.tools.clock.date(),
        this.options.validMs,
      );
      const { keep } = step;
      if (keep === undefined) return { serving: made, trusted: [made.ca] };
      // Another replica may still show what came before.
      return { serving: keep, next: made, trusted: [...new Set([...this.trusted, keep.ca, made.ca])] };
    }
    const { serving, trusted } = state as State;
    return step.kind === "switch" ? { serving: step.next, trusted } : { serving, trusted: [serving.ca] };
  }
}
