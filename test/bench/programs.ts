/**
 * `npx tsx test/bench/programs.ts`: what the programs that stay take, on a real API server: memory at rest and at its
 * peak, processor time and requests. LINKERD_CNI_FORMER names an executable of another version, which is called in the
 * same way and has its plugin `linkerd-cni` beside it: then each has an API server, and both run at the same time.
 * A number of seconds as the argument sets how long they rest. Needs root, etcd and kube-apiserver.
 */
import { type ChildProcess, execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { outputs } from "../../build/paths";
import { TestNode } from "../kernel/installer-node";
import { AUDIT_POLICY, type Request, readRequests } from "../scale/audit";
import { each } from "../scale/each";
import { defaultStanza } from "../support/default-stanza";
import { NODE, passed } from "../support/meshed-pod";
import { CNI_NAMESPACE, MultusApi, OPERATOR_NAMESPACE } from "../support/multus";
import { PodsInNamespace } from "../support/pods-in-api";
import { freePort } from "../support/ports";
import { mebibytes, processorMs } from "../support/processes";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { realApiMissing } from "../support/real-api";

const PODS = 250;
const FEW = 200;
const MANY = 5000;
const PARALLEL = 8;
const SETTLE_MS = 15_000;
const HOUR_MS = 3_600_000;
const REST_MS = Number(process.argv[2] ?? 300) * 1000;

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

type Figures = Map<string, string>;

/** The beginning of a list. */
interface Page {
  readonly items: readonly object[];
  readonly metadata: { readonly remainingItemCount?: number };
}

/** The programs of one version, and their API server. */
class Contestant {
  readonly figures: Figures = new Map();
  private readonly running = new Map<ProgramName, ChildProcess>();
  private readonly accounts: string;

  private constructor(
    readonly name: string,
    private readonly executable: string,
    private readonly cluster: MultusApi,
    private readonly directory: string,
    private readonly node: TestNode,
    private readonly stanza: string,
  ) {
    this.accounts = join(directory, "accounts");
  }

  static async open(name: string, executable: string): Promise<Contestant> {
    const directory = mkdtempSync(join(tmpdir(), "programs-"));
    writeFileSync(join(directory, "policy.json"), JSON.stringify(AUDIT_POLICY));
    const cluster = await MultusApi.start([
      `--audit-policy-file=${join(directory, "policy.json")}`,
      `--audit-log-path=${join(directory, "audit.log")}`,
    ]);
    const node = new TestNode(
      { "10-k.conflist": '{"cniVersion":"1.0.0","name":"k","plugins":[{"type":"bridge"}]}' },
      readFileSync(join(dirname(executable), "linkerd-cni")),
    );
    const stanza = await defaultStanza(outputs.manifests, false);
    const made = new Contestant(name, executable, cluster, directory, node, stanza);
    await made.prepare(stanza);
    return made;
  }

  private async prepare(stanza: string): Promise<void> {
    const { api } = this.cluster;
    await this.cluster.installMultus();
    await this.cluster.configure(stanza);
    const accounts = ["install", "repair", "multus"];
    for (const name of accounts) {
      const path = `/api/v1/namespaces/${CNI_NAMESPACE}/serviceaccounts`;
      await api.json({ method: "POST", path, body: { metadata: { name } } });
    }
    // What each version may do is not what is measured.
    await api.json({
      method: "POST",
      path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
      body: {
        metadata: { name: "all" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
        subjects: accounts.map((name) => ({ kind: "ServiceAccount", name, namespace: CNI_NAMESPACE })),
      },
    });
    await api.create({ apiVersion: "v1", kind: "Node", metadata: { name: NODE } });
    const body = {
      metadata: { name: "linkerd-cni" },
      spec: { nodeName: NODE, containers: [{ name: "c", image: "i" }] },
    };
    await api.json({ method: "POST", path: `/api/v1/namespaces/${CNI_NAMESPACE}/pods`, body });
    await this.cluster.namespace("shop");
    const shop = new PodsInNamespace(api, "shop");
    await each(numbers(0, PODS), PARALLEL, (at) => shop.start(`pod-${at}`, passed));
    await each(numbers(0, FEW), PARALLEL, (at) => this.cluster.namespace(`team-${at}`, "enabled"));
  }

  private async start(program: ProgramName, args: readonly string[], env: Readonly<Record<string, string>>) {
    const { api } = this.cluster;
    const account = join(this.accounts, program);
    mkdirSync(account, { recursive: true });
    const { status } = await api.json<{ status: { token: string } }>({
      method: "POST",
      path: `/api/v1/namespaces/${CNI_NAMESPACE}/serviceaccounts/${program}/token`,
      body: { spec: { expirationSeconds: 7200 } },
    });
    writeFileSync(join(account, "token"), status.token);
    writeFileSync(join(account, "ca.crt"), api.server.ca ?? "");
    const access = {
      KUBERNETES_SERVICE_HOST: api.server.host,
      KUBERNETES_SERVICE_PORT: String(api.server.port),
      SERVICE_ACCOUNT_DIR: account,
    };
    const { executable } = this;
    const child = startProgram(program, { args, executable, isSilent: true, env: { ...env, ...access } });
    this.running.set(program, child);
  }

  /** Starts all programs; resolves once the operator has written its definitions. */
  async run(): Promise<void> {
    const health = String(await freePort());
    const installer = {
      ...this.node.environment(),
      CNI_NETWORK_CONFIG: this.stanza,
      NODE_NAME: NODE,
      HEALTH_PORT: health,
      POD_NAMESPACE: CNI_NAMESPACE,
      POD_NAME: "linkerd-cni",
    };
    await this.start("install", [], installer);
    const repair = { LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: NODE, LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "r" };
    await this.start("repair", [`--admin-addr=127.0.0.1:${await freePort()}`, "--installer-ready="], repair);
    const flags = [
      `-health-probe-bind-address=127.0.0.1:${await freePort()}`,
      `-metrics-bind-address=127.0.0.1:${await freePort()}`,
      `-webhook-port=${await freePort()}`,
      "-requests-per-second=200",
      "-request-burst=200",
    ];
    await this.start("multus", flags, { POD_NAMESPACE: OPERATOR_NAMESPACE, POD_NAME: "operator" });
    await this.defined(FEW);
    while ((await fetch(`http://127.0.0.1:${health}/ready`)).status !== 200) await sleep(500);
  }

  private async defined(count: number): Promise<void> {
    // A list of all is larger than the client takes: the first one tells how many others there are.
    const path = `${this.cluster.definitionsPath()}?limit=1`;
    for (let found = 0; found < count; ) {
      await sleep(2000);
      const { items, metadata } = await this.cluster.api.json<Page>({ path, deadlineMs: 60_000 });
      found = items.length + (metadata.remainingItemCount ?? 0);
    }
    await sleep(SETTLE_MS);
  }

  /** Memory, then what a rest of some time takes. */
  async rest(): Promise<void> {
    const before = new Map([...this.running].map(([program, one]) => [program, processorMs(one.pid)]));
    const begun = Date.now();
    await sleep(REST_MS);
    const ended = Date.now();
    const hourly = (count: number) => (count * HOUR_MS) / (ended - begun);
    const requests = (await readRequests(join(this.directory, "audit.log"))).filter(
      ({ at }) => begun <= at && at < ended,
    );
    const by =
      (program: ProgramName) =>
      ({ account }: Request) =>
        account === program;
    for (const [program, one] of this.running) {
      this.remember(program, one, "");
      const processor = hourly(processorMs(one.pid) - (before.get(program) ?? 0)) / 1000;
      this.figures.set(`${program}, processor, s an hour at rest`, processor.toFixed(1));
      this.figures.set(`${program}, requests an hour at rest`, hourly(requests.filter(by(program)).length).toFixed(0));
    }
  }

  /** Gives the operator many namespaces. */
  async grow(): Promise<void> {
    await each(numbers(FEW, MANY), PARALLEL, (at) => this.cluster.namespace(`team-${at}`, "enabled"));
    await this.defined(MANY);
    const operator = this.running.get("multus");
    if (operator !== undefined) this.remember("multus", operator, `, ${MANY} definitions`);
  }

  private remember(program: string, one: ChildProcess, what: string): void {
    this.figures.set(`${program}${what}, memory at rest, MiB`, mebibytes(one.pid, "VmRSS").toFixed(1));
    this.figures.set(`${program}${what}, memory at its peak, MiB`, mebibytes(one.pid, "VmHWM").toFixed(1));
  }

  async close(): Promise<void> {
    for (const child of this.running.values()) child.kill("SIGKILL");
    await this.cluster.close();
    this.node.delete();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** A copy that lies in the page cache in small pieces: of larger ones the kernel maps, and counts, more than is used. */
function fresh(executable: string, directory: string): string {
  const path = join(directory, "linkerd-cni");
  copyFileSync(executable, path);
  execFileSync("dd", [`of=${path}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
  return path;
}

async function main(): Promise<void> {
  const missing = realApiMissing();
  if (missing !== undefined) throw new Error(`needs ${missing}`);
  await buildPrograms();
  const directory = mkdtempSync(join(tmpdir(), "programs-"));
  const former = process.env["LINKERD_CNI_FORMER"];
  const names = { ...(former === undefined ? {} : { former }), now: fresh(outputs.plugin, directory) };
  const opened = await Promise.all(Object.entries(names).map(([name, path]) => Contestant.open(name, path)));
  const say = (what: string) => process.stderr.write(`${what}; load ${loadavg()[0]?.toFixed(1)}\n`);
  try {
    say("starting");
    await Promise.all(opened.map((one) => one.run()));
    say("resting");
    await Promise.all(opened.map((one) => one.rest()));
    say("rested");
    await Promise.all(opened.map((one) => one.grow()));
    say("grown");
  } finally {
    for (const [what] of opened[0]?.figures ?? []) {
      process.stdout.write(`| ${[what, ...opened.map(({ figures }) => figures.get(what) ?? "")].join(" | ")} |\n`);
    }
    for (const one of opened) await one.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
