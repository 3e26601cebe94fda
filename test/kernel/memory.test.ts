import { type ChildProcess, execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { Annotation, OperatorPath } from "../../cni/contract";
import { reviewOf } from "../support/admission-review";
import { ApiStub } from "../support/api-server";
import { get } from "../support/http";
import { failing, meshedPod, NODE, ownedBy, passed, running } from "../support/meshed-pod";
import { PodsApi } from "../support/pods-api";
import { freePort } from "../support/ports";
import { kilobytes } from "../support/processes";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { environmentOf, operatorFlags, repairFlags } from "../support/program-settings";
import { until } from "../support/until";
import { TestNode } from "./installer-node";

const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** In each part of the test that looks for leaks, and how many parts there are at most. */
const ROUNDS = 300;
const MOST_PARTS = 5;

/** Meshed pods of a dense node, and how many of them started without their redirect. */
const PODS = 250;
const BROKEN = 10;
/** Pods that pass through a watch. */
const PASSING = 10_000;
/** The request for a list of them. */
const LIST = /^\/api\/v1\/pods\?(?!.*watch=)/;

/** A pod with as much text as the API server has of a meshed one, about 12 kB; every other one has no validator. */
function denselyMade(index: number) {
  const name = index < BROKEN ? `broken-${index}` : `good-${index}`;
  const env = Array.from({ length: 100 }, (_, which) => ({ name: `LINKERD2_PROXY_${which}`, value: "v".repeat(80) }));
  const containers = [{ name: "linkerd-proxy", env }, { name: "app" }];
  const isValidated = index < BROKEN || index % 2 === 0;
  return meshedPod(name, {
    metadata: ownedBy(name),
    spec: isValidated ? { containers } : { containers, initContainers: [] },
    status: index < BROKEN ? failing : isValidated ? passed : running,
  });
}

/** A namespace that the API server lists; about others it is silent. */
const KNOWN = "shop";
/** Reviews of 248 KB. Together they are less than may be in transit; their documents would take 210 MiB. */
const CROWDED = 30;
const CROWD = Array.from({ length: 31_000 }, () => ({ a: 0 }));

/** A review of a pod with nearly as many parts as it may have. */
const crowdedReview = (namespace: string): string => reviewOf(namespace, { spec: { crowd: CROWD } });

describe("memory of the image's programs, as the image runs them, with TLS, probes and metrics in use", () => {
  let api: ApiStub;
  let node: TestNode;
  let executable: string;
  let child: ChildProcess | undefined;

  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start((request, response) => {
      if (request.url?.startsWith("/api/v1/namespaces/unknown-")) return;
      response.writeHead(200, { "content-type": "application/json" });
      const items = request.url?.startsWith("/api/v1/namespaces?") ? [{ metadata: { name: KNOWN } }] : [];
      if (request.url?.includes("watch=")) response.flushHeaders();
      else response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items }));
    });
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    executable = join(node.root, "linkerd-cni");
    copyFileSync(outputs.plugin, executable);
    // A file that was just written lies in the page cache in large pieces, which the kernel maps, and counts, whole.
    execFileSync("dd", [`of=${executable}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
  });
  beforeEach(() => writeFileSync(join(node.accountDir, "ca.crt"), api.ca));
  afterEach(() => child?.kill("SIGKILL"));
  afterAll(() => {
    api.close();
    node.delete();
  });

  const askAt = (port: number) => (path: string) => get(port, `/${path}`);

  /** Starts a program and waits until it is ready. @param server the API server's port */
  async function start(
    name: ProgramName,
    port: number,
    args: readonly string[] = [],
    server = api.port,
  ): Promise<void> {
    child = startProgram(name, {
      args,
      executable,
      isSilent: true,
      env: node.environment({
        KUBERNETES_SERVICE_PORT: String(server),
        NODE_NAME: NODE,
        LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: NODE,
        LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-abcde",
        HEALTH_PORT: String(port),
      }),
    });
    const ask = askAt(port);
    await until("it to be ready", async () => (await ask("ready")).status === 200);
  }

  test.each(["install", "repair", "nri", "multus"] as const)("%s logs its limit at debug level", async (name) => {
    const port = await freePort();
    const { accountDir } = node;
    const flags: Partial<Record<ProgramName, readonly string[]>> = {
      repair: [...repairFlags(port), "-log-level=debug"],
      multus: [...operatorFlags(accountDir, { health: port, webhook: await freePort() }).flags, "-log-level=debug"],
    };
    const env = { ...environmentOf(node, api, port), LOG_LEVEL: "debug" };
    const started = startProgram(name, { executable, args: flags[name] ?? [], env });
    child = started;
    let log = "";
    for await (const text of started.stdout ?? []) {
      log += text;
      if (log.includes("\n")) break;
    }
    expect(log).toMatch(/debug: memory is limited to \d+ MiB\n/);
  });

  /** Starts a program and asks it for all that it serves. */
  async function peakOf(name: ProgramName, port: number, args: readonly string[] = []): Promise<number> {
    await start(name, port, args);
    const ask = askAt(port);
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(["ready", "live", "metrics"].map(ask));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    const [peak = Number.NaN, own, shared] = (["VmHWM", "RssAnon", "RssFile"] as const).map((row) =>
      kilobytes(child?.pid, row),
    );
    process.stdout.write(`${name}: peak ${peak} kB; ${own} kB its own, ${shared} kB shared with the file\n`);
    return peak;
  }

  test("the installer uses at most 5 MiB at its peak", async () => {
    expect(await peakOf("install", await freePort())).toBeLessThanOrEqual(5 * 1024);
  });

  test("the repair controller uses at most 6 MiB at its peak", async () => {
    const port = await freePort();
    const args = repairFlags(port);
    expect(await peakOf("repair", port, args)).toBeLessThanOrEqual(6 * 1024);
  });

  describe("the operator's webhook", () => {
    let webhook: number;
    let ca: string;

    beforeEach(async () => {
      const port = await freePort();
      webhook = await freePort();
      const operator = operatorFlags(node.accountDir, { health: port, webhook });
      ca = operator.ca;
      child = startProgram("multus", {
        executable,
        isSilent: true,
        args: operator.flags,
        env: environmentOf(node, api, port),
      });
      await until("it to be ready", async () => (await askAt(port)("readyz")).status === 200);
    });

    const peak = () => kilobytes(child?.pid, "VmHWM");

    /**
     * Sends a review, its last byte once told to.
     * @returns when the others are sent; then the answer's status, or what kept it away
     */
    async function begin(body: string, end: Promise<unknown> = Promise.resolve()) {
      const headers = { "content-type": "application/json", "content-length": body.length };
      const to = { host: "127.0.0.1", port: webhook, ca, path: OperatorPath.webhook, method: "POST", agent: false };
      const outgoing = request({ ...to, headers });
      const status = new Promise<number | string>((resolve) => {
        outgoing.on("response", (response) => resolve(response.resume().statusCode ?? 0));
        outgoing.on("error", ({ message }) => resolve(message));
      });
      const sent = new Promise((resolve) => outgoing.write(body.slice(0, -1), resolve));
      void end.then(() => outgoing.end(body.slice(-1)));
      await Promise.race([sent, status]);
      return { status };
    }

    const statusOf = async (body: string) => (await begin(body)).status;

    test("a review of 7 MiB that is nested deep costs at most 32 MiB, and is refused", async () => {
      const before = peak();
      expect(await statusOf("[".repeat(7 * 1024 * 1024))).toBe(413);
      process.stdout.write(`multus: peak ${before} kB, then ${peak()} kB\n`);
      expect(peak() - before).toBeLessThanOrEqual(32 * 1024);
    });

    test("a networks annotation of 6 MiB costs at most 48 MiB, and is refused", async () => {
      const before = peak();
      const networks = `[${"{},".repeat(2 * 1024 * 1024)}{}]`;
      const annotations = {
        [Annotation.inject]: "enabled",
        [Annotation.multus]: "enabled",
        [Annotation.networks]: networks,
      };
      expect(await statusOf(reviewOf(KNOWN, { metadata: { annotations } }))).toBe(400);
      process.stdout.write(`multus, large networks: peak ${before} kB, then ${peak()} kB\n`);
      expect(peak() - before).toBeLessThanOrEqual(48 * 1024);
    });

    test.each([
      // The API server is silent about these namespaces.
      { namespaces: "unknown", prefix: "unknown-", status: 500 },
      { namespaces: "known", prefix: KNOWN, status: 200 },
    ])(`${CROWDED} crowded reviews of $namespaces namespaces that arrive at once cost at most 64 MiB`, async (each) => {
      const { namespaces, prefix, status: expected } = each;
      const before = peak();
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const crowded = Array.from({ length: CROWDED }, () => begin(crowdedReview(prefix), released));
      const begun = await Promise.all(crowded);
      release();
      // Behind them, and while they wait.
      expect(await statusOf(crowdedReview(KNOWN))).toBe(200);
      const statuses = await Promise.all(begun.map(({ status }) => status));
      expect(statuses).toEqual(statuses.map(() => expected));
      expect(await statusOf(crowdedReview(KNOWN))).toBe(200);
      process.stdout.write(`multus, ${CROWDED} crowded reviews, ${namespaces}: peak ${before} kB, then ${peak()} kB\n`);
      expect(peak() - before).toBeLessThanOrEqual(64 * 1024);
    });
  });

  // The API server's cache answers a list with all pods at once, however many are asked for.
  test(`the repair controller uses at most 6 MiB while it reads a list of ${PODS} large pods, and replaces the ${BROKEN} broken`, async () => {
    const pods = await PodsApi.start();
    try {
      writeFileSync(join(node.accountDir, "ca.crt"), pods.stub.ca);
      writeFileSync(join(node.accountDir, "token"), pods.server.token ?? "");
      for (let index = 0; index < PODS; index += 1) pods.put(denselyMade(index));
      const broken = (): boolean => [...pods.pods.values()].some(({ metadata }) => metadata.name.startsWith("broken-"));
      // What its controller makes instead of a pod.
      pods.afterDelete = ({ metadata }) => pods.put(meshedPod(`again-${metadata.name}`, { status: passed }));
      const port = await freePort();
      await start("repair", port, repairFlags(port), pods.stub.port);
      await until(
        "the broken pods to be replaced, and said so",
        async () => !broken() && pods.events.length === BROKEN,
      );
      expect(pods.deletions.map(({ name }) => name).sort()).toEqual(
        Array.from({ length: BROKEN }, (_, index) => `broken-${index}`),
      );
      expect((await askAt(port)("ready")).status).toBe(200);
      const [peak, now] = [kilobytes(child?.pid, "VmHWM"), kilobytes(child?.pid, "VmRSS")];
      process.stdout.write(`repair, ${PODS} pods, ${BROKEN} replaced: peak ${peak} kB, then ${now} kB\n`);
      expect(peak).toBeLessThanOrEqual(6 * 1024);
    } finally {
      pods.close();
    }
  });

  describe("the repair controller's watch", () => {
    let pods: PodsApi;
    beforeEach(async () => {
      pods = await PodsApi.start();
      writeFileSync(join(node.accountDir, "ca.crt"), pods.stub.ca);
      writeFileSync(join(node.accountDir, "token"), pods.server.token ?? "");
      const port = await freePort();
      await start("repair", port, repairFlags(port), pods.stub.port);
      await until("the watch", () => pods.watching === 1);
    });
    afterEach(() => pods.close());

    /** Waits until a broken pod is deleted, and with it all that the watch has brought before. */
    async function repaired(name: string): Promise<void> {
      pods.put(meshedPod(name, { status: failing }));
      await until("the deletion", () => pods.deletions.some((each) => each.name === name));
    }

    test(`${PASSING} pods that come and go cost at most 1 MiB`, async () => {
      await repaired("before");
      const before = kilobytes(child?.pid, "VmHWM");
      for (let index = 0; index < PASSING; index += 1) {
        const pod = meshedPod(`passing-${index}`);
        pods.put(pod);
        pods.remove(pod);
        // Lets the server write, and holds no more than a batch of them.
        if (index % 500 === 0) {
          pods.compact();
          await new Promise(setImmediate);
        }
      }
      await repaired("after");
      const after = kilobytes(child?.pid, "VmHWM");
      process.stdout.write(`repair, ${PASSING} pods that come and go: peak ${before} kB, then ${after} kB\n`);
      expect(pods.count(LIST)).toBe(1);
      expect(after - before).toBeLessThanOrEqual(1024);
    });

    test("an event of 1 MiB costs at most 8 MiB, all of which it gives back", async () => {
      await repaired("before");
      const before = kilobytes(child?.pid, "VmRSS");
      pods.put(meshedPod("large", { metadata: { annotations: { filler: "x".repeat(1024 * 1024) } }, status: failing }));
      await until("its deletion", () => pods.deletions.some(({ name }) => name === "large"));
      await repaired("after");
      const [peak, after] = [kilobytes(child?.pid, "VmHWM"), kilobytes(child?.pid, "VmRSS")];
      process.stdout.write(`repair, an event of 1 MiB: ${before} kB, peak ${peak} kB, then ${after} kB\n`);
      expect(pods.count(LIST)).toBe(1);
      expect(peak - before).toBeLessThanOrEqual(8 * 1024);
      expect(after - before).toBeLessThanOrEqual(512);
    });
  });

  test("the installer's memory and descriptors do not grow with changes of files and requests", async () => {
    const port = await freePort();
    await start("install", port);
    const rounds = async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        // Not the file that a container runtime takes: repairs of that one wait longer each time.
        node.write("90-other.conflist", JSON.stringify({ name: `other-${round}`, plugins: [{ type: "ptp" }] }));
        await Promise.all(["ready", "live", "metrics"].map(askAt(port)));
      }
      const pid = child?.pid ?? 0;
      return { own: kilobytes(pid, "RssAnon"), descriptors: descriptors(pid) };
    };
    let [first, second] = [await rounds(), await rounds()];
    process.stdout.write(`install: ${first.own} kB its own, then ${second.own} kB\n`);
    // Garbage comes and goes; a leak grows in each part.
    for (let part = 2; part < MOST_PARTS && second.own > first.own + 256; part += 1)
      [first, second] = [second, await rounds()];
    expect(second.own).toBeLessThanOrEqual(first.own + 256);
    // Some come and go: files that it reads, connections that clients keep.
    expect(second.descriptors - first.descriptors).toBeLessThanOrEqual(8);
  });
});
