import { type Kubectl, type Pod, pod } from "./pods";

/** What came of a stream of pod starts. */
export interface StreamResult {
  readonly started: number;
  /** Answers of the pods to a connection from outside that are not the proxy's. */
  readonly notRedirected: readonly object[];
}

const SIZE = 6;

/** Starts meshed pods, one batch after the other, until told to stop; each pod is called once it is ready. */
export class PodStream {
  private stopping = false;
  private readonly running: Promise<StreamResult>;

  /** @param client pod that calls the others */
  constructor(
    private readonly kubectl: Kubectl,
    private readonly client: string,
  ) {
    this.running = this.run();
    // Whoever stops the stream learns of its failure.
    this.running.catch(() => undefined);
  }

  /** Ends the stream once it has started so many pods. */
  async stop(atLeast: number): Promise<StreamResult> {
    this.wanted = atLeast;
    this.stopping = true;
    return this.running;
  }

  private wanted = 0;

  private async run(): Promise<StreamResult> {
    const notRedirected: object[] = [];
    let started = 0;
    for (let batch = 0; !this.stopping || started < this.wanted; batch++) {
      const addresses = await this.startBatch(batch);
      const answers = await this.kubectl.dialAll(
        this.client,
        addresses.map((address) => `${address}:8080`),
      );
      notRedirected.push(...answers.filter((answer) => !("port" in answer && answer.port === 4143)));
      started += addresses.length;
      await this.kubectl.run("delete", "pods", `--selector=batch=b${batch}`, "--wait=false");
    }
    return { started, notRedirected };
  }

  private async startBatch(batch: number): Promise<string[]> {
    const labels = { batch: `b${batch}` };
    const pods = Array.from({ length: SIZE }, (_, index) =>
      pod(`stream-${batch}-${index}`, { proxy: "sidecar", labels }),
    );
    await this.kubectl.apply(...pods);
    await this.kubectl.run("wait", "pods", `--selector=batch=b${batch}`, "--for=condition=Ready", "--timeout=60s");
    const { items } = await this.kubectl.json<{ items: Pod[] }>("get", "pods", `--selector=batch=b${batch}`);
    return items.map(({ status }) => status.podIP ?? "");
  }
}
