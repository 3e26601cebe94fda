import { INJECTED, type Kubectl, type Pod, pod } from "./pods";

/** How a stream's pods are made. */
interface StreamOptions {
  /** With an init container that fails if the pod is not redirected. @default false */
  readonly validator?: boolean;
}

/** The result of a stream of pod starts. */
interface StreamResult {
  readonly started: number;
  /** Answers of the pods to a connection from outside that are not the proxy's. */
  readonly notRedirected: readonly object[];
  /** Names of pods whose validator failed before it passed, because their redirect was set late. */
  readonly late: readonly string[];
}

/** Batches under way at once: while the pods of one are called and deleted, those of the other start. */
const LANES = 2;
const SIZE = 8;

/**
 * Starts pods that linkerd's injector meshed, batch after batch, until told to stop; each pod is called once it is ready.
 * Their annotations decide if an API server that is slow, as on a busy machine, does not answer.
 */
export class PodStream {
  private static streams = 0;
  /** The pods of a stream before this one may not be gone yet. */
  private readonly name = `stream-${PodStream.streams++}`;
  private stopping = false;
  private batches = 0;
  private count = 0;
  private readonly notRedirected: object[] = [];
  private readonly late: string[] = [];
  private readonly running: Promise<unknown>;

  /** @param client pod that calls the others */
  constructor(
    private readonly kubectl: Kubectl,
    private readonly client: string,
    private readonly options: StreamOptions = {},
  ) {
    this.running = Promise.all(Array.from({ length: LANES }, () => this.run()));
    // stop() throws the error.
    this.running.catch(() => undefined);
  }

  /** Pods that have started so far, and answered. */
  get started(): number {
    return this.count;
  }

  /** Ends the stream with the batches that are under way. */
  async stop(): Promise<StreamResult> {
    this.stopping = true;
    await this.running;
    return { started: this.count, notRedirected: this.notRedirected, late: this.late };
  }

  /** @throws the error that has ended the stream early */
  async check(): Promise<void> {
    if (this.stopping) await this.running;
  }

  /** If one lane fails, the others end, too. */
  private async run(): Promise<void> {
    try {
      await this.startBatches();
    } finally {
      this.stopping = true;
    }
  }

  private async startBatches(): Promise<void> {
    while (!this.stopping) {
      const batch = `${this.name}-${this.batches++}`;
      const addresses = await this.start(batch);
      const answers = await this.kubectl.dialAll(
        this.client,
        addresses.map((address) => `${address}:8080`),
      );
      this.notRedirected.push(...answers.filter((answer) => !("port" in answer && answer.port === 4143)));
      this.count += addresses.length;
      await this.kubectl.run("delete", "pods", `--selector=batch=${batch}`, "--wait=false");
    }
  }

  private async start(batch: string): Promise<string[]> {
    const pods = Array.from({ length: SIZE }, (_, index) =>
      pod(`${batch}-${index}`, { ...this.options, proxy: "sidecar", annotations: INJECTED, labels: { batch } }),
    );
    await this.kubectl.apply(...pods);
    await this.kubectl.run("wait", "pods", `--selector=batch=${batch}`, "--for=condition=Ready", "--timeout=180s");
    const { items } = await this.kubectl.json<{ items: Pod[] }>("get", "pods", `--selector=batch=${batch}`);
    const failed = items.filter(({ status }) =>
      (status.initContainerStatuses ?? []).some((one) => one.restartCount > 0),
    );
    this.late.push(...failed.map(({ metadata }) => metadata.name));
    return items.map(({ status }) => status.podIP ?? "");
  }
}
