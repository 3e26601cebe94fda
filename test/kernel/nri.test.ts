/** The NRI plugin's executable against real network namespaces; the runtime's side is played, so that it can misbehave. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { buildPlugin } from "../../build/programs";
import { frames, Stream } from "../../nri/mux";
import { FakeRuntime, type Pod } from "../../nri/runtime.testing";
import { eventually } from "../../system/eventually.testing";
import { ApiStub, json } from "../support/api-server";
import { Node, withRunDir } from "../support/netns";
import { freePort } from "../support/ports";
import { missing, suite } from "../support/requirements";

const INJECTED = { "linkerd.io/created-by": "linkerd/proxy-injector x", "linkerd.io/proxy-version": "x" };
const TABLE = ["list", "table", "ip", "linkerd-cni"];

suite("the NRI plugin", missing({ root: true, programs: ["nft", "ip", "unshare"] }), () => {
  let directory: string;
  let executable: string;
  let node: Node;
  let pods = 0;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "nri-"));
    executable = join(directory, "linkerd-cni");
    await buildPlugin(executable);
    node = await Node.open();
  });
  afterAll(async () => {
    await node.close();
    await rm(directory, { recursive: true });
  });

  /** A daemon, and what it wrote. */
  interface Started {
    readonly child: ChildProcess;
    readonly output: () => string;
    readonly port: number;
    readonly ask: (path: string, milliseconds?: number) => Promise<[number, string]>;
    end(): Promise<void>;
  }

  async function start(env: Readonly<Record<string, string>> = {}, within: readonly string[] = []): Promise<Started> {
    const port = await freePort();
    const given = { NRI_SOCKET_DIR: directory, NRI_NETNS_DIR: directory, HEALTH_PORT: `${port}`, LOG_LEVEL: "debug" };
    const [program = executable, ...args] = [...within, executable, "nri"];
    const child = spawn(program, args, { env: { PATH: process.env["PATH"], ...given, ...env } });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const ended = new Promise((resolve) => child.once("close", resolve));
    const ask = async (path: string, milliseconds = 30_000): Promise<[number, string]> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        signal: AbortSignal.timeout(milliseconds),
        headers: { connection: "close" },
      });
      return [answer.status, await answer.text()];
    };
    const end = async () => {
      child.kill("SIGKILL");
      await ended;
    };
    return { child, output: () => output, port, ask, end };
  }

  /** Waits until a daemon, which may not listen yet, has looked at all pods. */
  const becomesReady = (daemon: Started) =>
    eventually(async () => (await daemon.ask("/ready"))[0] === 200 || undefined);

  /** Waits until a daemon's log holds a text. */
  const says = (daemon: Started, text: string) => eventually(() => daemon.output().includes(text) || undefined);

  /** A pod with a network namespace of its own, as a runtime mounts it. */
  async function pod(changes: Partial<Pod> = {}): Promise<Pod & { readonly path: string }> {
    const id = `pod-${++pods}`;
    const path = await node.pod();
    await symlink(path, join(directory, id));
    const netns = join(directory, id);
    return { id, name: id, annotations: INJECTED, addresses: ["10.0.0.1"], netns, path, ...changes };
  }

  const rules = (path: string) => {
    try {
      return node.within(path, "nft", TABLE);
    } catch {
      return undefined;
    }
  };

  /** Runs work with a daemon and a runtime, and ends both. */
  async function together<T>(
    behaviour: FakeRuntime["behaviour"],
    work: (runtime: FakeRuntime, daemon: Started) => Promise<T>,
    env: Readonly<Record<string, string>> = {},
    within: readonly string[] = [],
  ): Promise<T> {
    const runtime = await FakeRuntime.listen(join(directory, "nri.sock"), behaviour);
    const daemon = await start(env, within);
    try {
      return await work(runtime, daemon);
    } finally {
      await daemon.end();
      await runtime.close();
    }
  }

  test.each(["call", "event"] as const)("sets a starting pod's rules, by the %s", async (how) => {
    const meshed = await pod();
    const plain = await pod({ annotations: {} });
    await together({}, async (runtime, daemon) => {
      await runtime.synchronized();
      expect(runtime.registered).toEqual([expect.stringContaining("linkerd-cni")]);
      expect(await runtime.run(meshed, how)).toBeUndefined();
      expect(await runtime.run(plain, how)).toBeUndefined();
      expect(rules(meshed.path)).toContain("redirect to :4143");
      expect(rules(plain.path)).toBeUndefined();
      // The second look finds them.
      expect(await runtime.create(meshed)).toBeUndefined();
      const [status, metrics] = await daemon.ask("/metrics");
      expect(status).toBe(200);
      expect(metrics).toContain('linkerd_cni_nri_pods_total{event="run",outcome="redirected"} 1\n');
      expect(metrics).toContain('linkerd_cni_nri_pods_total{event="run",outcome="skipped"} 1\n');
      expect(metrics).toContain('linkerd_cni_nri_pods_total{event="create",outcome="present"} 1\n');
      expect(metrics).toContain("linkerd_cni_nri_mended_pods_total 0\n");
      expect(metrics).toContain("linkerd_cni_nri_lookups_total 0\n");
    });
  });

  it("sets rules of pods that run already, in place, however many messages name them", async () => {
    const [one, two, plain] = [await pod(), await pod(), await pod({ annotations: {} })];
    await together({ running: [[one], [], [plain, two]] }, async (_, daemon) => {
      await becomesReady(daemon);
      expect([one, two, plain].map(({ path }) => rules(path) !== undefined)).toEqual([true, true, false]);
      expect((await daemon.ask("/metrics"))[1]).toContain("linkerd_cni_nri_mended_pods_total 2\n");
      await says(daemon, `pod shop/${one.name} ran without rules: set them in place`);
    });
  });

  it("among running pods, skips ended ones, and reports those it cannot decide about", async () => {
    const ended: Pod = { id: "ended", name: "ended", annotations: INJECTED, netns: join(directory, "ended") };
    const wrong = await pod({ annotations: { ...INJECTED, "config.linkerd.io/proxy-uid": "root" } });
    const manual = await pod({ annotations: { "linkerd.io/proxy-version": "x" } });
    const control = await pod({
      annotations: { "linkerd.io/proxy-version": "x" },
      labels: { "linkerd.io/control-plane-component": "destination" },
    });
    // containerd 2.3 no longer names the network namespace of a pod that has ended.
    const nameless: Pod = { id: "nameless", name: "nameless", annotations: INJECTED, addresses: ["10.0.0.1"] };
    await together({ running: [[ended, nameless, wrong, manual, control]] }, async (_, daemon) => {
      await becomesReady(daemon);
      expect([wrong, manual].map(({ path }) => rules(path))).toEqual([undefined, undefined]);
      expect(rules(control.path)).toContain("tcp dport 6443 return");
      const [, metrics] = await daemon.ask("/metrics");
      expect(metrics).toContain('linkerd_cni_nri_pods_total{event="synchronize",outcome="skipped"} 2\n');
      expect(metrics).toContain('linkerd_cni_nri_pods_total{event="synchronize",outcome="failed"} 2\n');
      await says(daemon, `warn: config.linkerd.io/proxy-uid on pod shop/${wrong.name}: "root" is not a numeric id`);
      await says(daemon, "the installer on this node does not answer: connect to /run/linkerd-cni/lookup.sock");
    });
  });

  describe("pods that Linkerd's injector did not inject", () => {
    let api: ApiStub;
    const manual = (changes: Partial<Pod> = {}) =>
      pod({ annotations: { "linkerd.io/proxy-version": "x" }, ...changes });
    beforeAll(async () => {
      api = await ApiStub.start(json(500, {}));
    });
    afterAll(() => api.close());
    beforeEach(() => {
      api.requests.length = 0;
    });
    /** Answers for any pod with these containers, and for its namespace. */
    const answers = (spec: object) => (request: IncomingMessage, response: ServerResponse) => {
      const [, , , , , kind, name] = (request.url ?? "").split("/");
      const metadata = { name, namespace: "shop", annotations: { "linkerd.io/proxy-version": "x" } };
      const ofNamespace = { name: "shop", annotations: { "config.linkerd.io/skip-outbound-ports": "5432" } };
      json(
        200,
        kind === "pods"
          ? { apiVersion: "v1", kind: "Pod", metadata, spec }
          : { apiVersion: "v1", kind: "Namespace", metadata: ofNamespace },
      )(request, response);
    };

    it("are looked up, with their namespace's settings, and only if rules are missing", async () => {
      const looked = await manual();
      api.answer = answers({ containers: [{ name: "app" }, { name: "linkerd-proxy" }] });
      await together(
        {},
        async (runtime, daemon) => {
          await runtime.synchronized();
          expect(await runtime.run(looked)).toBeUndefined();
          expect(rules(looked.path)).toContain("tcp dport 5432 return");
          expect(api.requests).toEqual([`/api/v1/namespaces/shop/pods/${looked.name}`, "/api/v1/namespaces/shop"]);
          expect(await runtime.create(looked)).toBeUndefined();
          expect(api.requests).toHaveLength(2);
          expect((await daemon.ask("/metrics"))[1]).toContain("linkerd_cni_nri_lookups_total 2\n");
        },
        {},
        withRunDir(api.runDir),
      );
    });

    it("are skipped if linkerd-init sets the rules, and are not looked up again", async () => {
      const looked = await manual();
      api.answer = answers({ containers: [{ name: "linkerd-proxy" }], initContainers: [{ name: "linkerd-init" }] });
      await together(
        {},
        async (runtime) => {
          await runtime.synchronized();
          expect(await runtime.run(looked)).toBeUndefined();
          expect(await runtime.create(looked)).toBeUndefined();
          expect(rules(looked.path)).toBeUndefined();
          expect(api.requests).toHaveLength(1);
        },
        {},
        withRunDir(api.runDir),
      );
    });

    it("and injected ones are also left to linkerd-init if they have it", async () => {
      const [injected, known] = [await pod(), await pod()];
      const init = { containers: [{ name: "linkerd-proxy" }], initContainers: [{ name: "linkerd-init" }] };
      api.answer = answers(init);
      await together(
        {},
        async (runtime) => {
          await runtime.synchronized();
          expect(await runtime.run(injected)).toBeUndefined();
          expect(await runtime.create(injected)).toBeUndefined();
          expect(rules(injected.path)).toBeUndefined();
          expect(api.requests).toEqual([`/api/v1/namespaces/shop/pods/${injected.name}`]);
          // If the API server does not answer, the annotations decide.
          api.answer = json(500, {});
          expect(await runtime.run(known)).toBeUndefined();
          expect(rules(known.path)).toContain("redirect to :4143");
        },
        {},
        withRunDir(api.runDir),
      );
    });

    it("are refused within the runtime's timeout if the API server does not answer", async () => {
      const looked = await manual();
      api.answer = () => {};
      await together(
        {},
        async (runtime) => {
          await runtime.synchronized();
          // The runtime allows 2 s, for what waits before this pod, too.
          expect(await runtime.run(looked)).toMatch(/within [1-6]?\d?\d ms/);
        },
        {},
        withRunDir(api.runDir),
      );
    });
  });

  it("looks again when a container is created, for a pod that started without it", async () => {
    const late = await pod();
    await together({}, async (runtime, daemon) => {
      await runtime.synchronized();
      expect(await runtime.create(late)).toBeUndefined();
      expect(rules(late.path)).toContain("redirect to :4140");
      expect((await daemon.ask("/metrics"))[1]).toContain("linkerd_cni_nri_mended_pods_total 1\n");
    });
  });

  it("refuses a pod whose annotation is wrong, with the CNI plugin's own message", async () => {
    const wrong = await pod({ annotations: { ...INJECTED, "config.linkerd.io/skip-inbound-ports": "foo" } });
    await together({}, async (runtime) => {
      await runtime.synchronized();
      const message = `linkerd-cni: config.linkerd.io/skip-inbound-ports on pod shop/${wrong.name}: "foo" is not a port or a range low-high`;
      expect(await runtime.run(wrong)).toBe(message);
      expect(rules(wrong.path)).toBeUndefined();
    });
  });

  it("truncates a long refusal to the runtime's limit", async () => {
    const ports = Array.from({ length: 3000 }, () => "x").join(",");
    const long = await pod({
      name: "n".repeat(3000),
      annotations: { ...INJECTED, "config.linkerd.io/skip-inbound-ports": ports },
    });
    await together({}, async (runtime) => {
      await runtime.synchronized();
      const refusal = await runtime.run(long);
      expect(refusal).toHaveLength(1000);
    });
  });

  it("does not change edited and foreign rules, and reports them", async () => {
    const [edited, foreign] = [await pod(), await pod()];
    await together({}, async (runtime, daemon) => {
      await runtime.synchronized();
      await runtime.run(edited);
      node.within(edited.path, "nft", ["flush", "chain", "ip", "linkerd-cni", "inbound"]);
      const before = rules(edited.path);
      const chain =
        "table ip nat { chain PROXY_INIT_REDIRECT { } ; chain PREROUTING { type nat hook prerouting priority -100; jump PROXY_INIT_REDIRECT; }; }";
      node.within(foreign.path, "nft", ["-f", "-"], chain);
      expect(await runtime.create(edited)).toBeUndefined();
      expect(await runtime.run(foreign)).toBeUndefined();
      expect(rules(edited.path)).toBe(before);
      expect(rules(foreign.path)).toBeUndefined();
      await says(
        daemon,
        `pod shop/${edited.name} has other rules than were set; they are left as they are: table ip linkerd-cni, chain inbound is empty`,
      );
      await says(
        daemon,
        `pod shop/${foreign.name} has rules of another program; they are left as they are: it has a chain PROXY_INIT_REDIRECT`,
      );
    });
  });

  it("passes pods on the host's network, and refuses a meshed one whose namespace is not known", async () => {
    await together({}, async (runtime) => {
      await runtime.synchronized();
      const { netns: _, path: __, ...host } = await pod({ addresses: [] });
      expect(await runtime.run(host)).toBeUndefined();
      expect(await runtime.run({ ...host, addresses: ["10.0.0.1"] })).toContain(
        "the runtime does not say which network namespace",
      );
      expect(await runtime.run({ ...host, netns: join(directory, "gone") })).toContain("ENOENT");
    });
  });

  describe("the namespace of a pod is in another directory", () => {
    const ELSEWHERE = "/run/netns/elsewhere/pod";
    const problem = () => `its network namespace ${ELSEWHERE} is not in ${directory}: set nri.netnsDir`;
    /** Waits until a daemon, which may not listen yet, says why it is not ready. */
    const unready = (daemon: Started) =>
      eventually(async () => {
        const [status, text] = await daemon.ask("/ready");
        return status === 503 && text.includes(problem()) ? true : undefined;
      });

    it("is not ready if a pod that runs has it, meshed or not", async () => {
      const plain = await pod({ annotations: {}, netns: ELSEWHERE });
      await together({ running: [[plain]] }, (_, daemon) => unready(daemon));
    });

    it("beside a chain, starts the pod, and is not ready", async () => {
      const meshed = await pod({ netns: ELSEWHERE });
      await together({}, async (runtime, daemon) => {
        await runtime.synchronized();
        await becomesReady(daemon);
        expect([await runtime.run(meshed), await runtime.create(meshed)]).toEqual([undefined, undefined]);
        await unready(daemon);
        const said = daemon.output().split("\n");
        expect(said.filter((line) => line.includes(problem()) && /error/i.test(line))).toHaveLength(1);
      });
    });

    it("without a chain, refuses a meshed pod, which would start without rules, and is not ready", async () => {
      const [meshed, plain] = [await pod({ netns: ELSEWHERE }), await pod({ annotations: {}, netns: ELSEWHERE })];
      await together(
        {},
        async (runtime, daemon) => {
          await runtime.synchronized();
          await becomesReady(daemon);
          expect(await runtime.run(plain)).toBeUndefined();
          expect(await runtime.run(meshed)).toContain(problem());
          await unready(daemon);
        },
        { CHAINED: "false" },
      );
    });
  });

  it("never sets rules in its own namespace", async () => {
    await symlink("/proc/self/ns/net", join(directory, "own"));
    await together({}, async (runtime) => {
      await runtime.synchronized();
      expect(
        await runtime.run({ id: "own", name: "own", annotations: INJECTED, netns: join(directory, "own") }),
      ).toContain("is the network namespace that this process runs in");
    });
  });

  it("reports a missing socket once, and connects when it exists", async () => {
    const daemon = await start();
    try {
      const [status, text] = await eventually(async () => {
        const answer = await daemon.ask("/ready");
        return answer[1].includes("nri.sock") ? answer : undefined;
      });
      expect(status).toBe(503);
      expect(text).toBe(
        `there is no socket ${directory}/nri.sock: containerd 2.0 and later and CRI-O 1.30 and later make it unless NRI is turned off in their configuration; set nri.socketDir where it is in another directory\n`,
      );
      const runtime = await FakeRuntime.listen(join(directory, "nri.sock"));
      await runtime.synchronized();
      await becomesReady(daemon);
      expect(daemon.output().split("there is no socket")).toHaveLength(2);
      // The runtime starts again.
      runtime.drop();
      await runtime.synchronized();
      expect(runtime.connections).toBe(2);
      await runtime.close();
    } finally {
      await daemon.end();
    }
  });

  it("retries a runtime that refuses it with back-off, and reports it once", async () => {
    await together({ refuse: "plugin 10-linkerd-cni is not welcome" }, async (runtime, daemon) => {
      await eventually(() => (runtime.connections >= 4 ? true : undefined));
      expect(
        daemon.output().split("the container runtime refuses the plugin: plugin 10-linkerd-cni is not welcome"),
      ).toHaveLength(2);
      runtime.behaviour = {};
      await runtime.synchronized();
    });
  });

  it("reconnects to a runtime that drops it with back-off, and reports it once", async () => {
    await together({ drops: true }, async (runtime, daemon) => {
      await eventually(() => (runtime.connections >= 4 ? true : undefined));
      expect(daemon.output().split("connected to containerd")).toHaveLength(2);
      expect(daemon.output().split("the container runtime closed the connection")).toHaveLength(2);
      runtime.behaviour = {};
      await runtime.synchronized();
    });
  });

  it("sets the rules of a pod with a user namespace, with no more rights than its container has", async () => {
    const other = ["--reuid=200000", "--regid=200000", "--clear-groups"];
    const holder = spawn("setpriv", [
      ...other,
      "unshare",
      "--user",
      "--map-root-user",
      "unshare",
      "--net",
      "sleep",
      "600",
    ]);
    const mounted = join(directory, "userns");
    await writeFile(mounted, "");
    const own = await readlink("/proc/self/ns/net");
    // The namespace is made after its owner's ids are mapped, as containerd does it.
    await eventually(async () => (await readlink(`/proc/${holder.pid}/ns/net`)) !== own || undefined);
    await eventually(
      () => spawnSync("mount", ["--bind", `/proc/${holder.pid}/ns/net`, mounted]).status === 0 || undefined,
    );
    const within = ["setpriv", "--bounding-set=-all,+net_admin,+sys_admin"];
    try {
      await together(
        {},
        async (runtime, daemon) => {
          await runtime.synchronized();
          const sandbox = { id: "userns", name: "userns", annotations: INJECTED, netns: mounted };
          const open = async () => (await readdir(`/proc/${daemon.child.pid}/fd`)).length;
          const before = await open();
          expect(await runtime.run(sandbox)).toBeUndefined();
          expect(await runtime.create(sandbox)).toBeUndefined();
          expect((await daemon.ask("/metrics"))[1]).toContain('{event="create",outcome="present"} 1\n');
          // The connection that the metrics came over ends a moment later.
          await eventually(async () => (await open()) <= before || undefined);
        },
        {},
        within,
      );
    } finally {
      spawnSync("umount", [mounted]);
      holder.kill("SIGKILL");
    }
  });

  it("outlives whatever a runtime sends", async () => {
    const seed = fc.sample(fc.uint8Array({ maxLength: 200 }), 20);
    const framed = fc.sample(fc.uint8Array({ maxLength: 200 }), 20).map((bytes) => frames(Stream.plugin, bytes));
    for (const garbage of [...seed, ...framed]) {
      await together({ garbage }, async (runtime, daemon) => {
        await eventually(() => (runtime.connections > 0 ? true : undefined));
        runtime.behaviour = {};
        await runtime.synchronized();
        expect(daemon.child.exitCode).toBeNull();
      });
    }
  });

  it("ends at once by SIGTERM, also as the first process of a container", async () => {
    await together({}, async (runtime) => {
      await runtime.synchronized();
      const env = { NRI_SOCKET_DIR: directory, NRI_NETNS_DIR: directory, HEALTH_PORT: `${await freePort()}` };
      const first = spawn("unshare", ["--pid", "--fork", executable, "nri"], {
        env: { ...env, PATH: process.env["PATH"] },
      });
      const ended = new Promise((resolve) => first.once("close", resolve));
      await eventually(() => (runtime.connections === 2 ? true : undefined));
      const children = await readFile(`/proc/${first.pid}/task/${first.pid}/children`, "utf8");
      process.kill(Number(children), "SIGTERM");
      expect(await ended).toBe(0);
    });
  });

  it.each([
    [{ NRI_INDEX: "5" }, 'NRI_INDEX "5" is not two digits, such as 10'],
    [{ CNI_NETWORK_CONFIG: "{" }, "CNI_NETWORK_CONFIG: "],
    [{ NRI_SOCKET_DIR: "run" }, 'NRI_SOCKET_DIR "run" is not an absolute path'],
  ])("%j is refused", async (env, message) => {
    const daemon = await start(env);
    await eventually(() => daemon.child.exitCode ?? undefined);
    expect(daemon.child.exitCode).toBe(1);
    await says(daemon, `linkerd-cni-nri: error: ${message}`);
  });
});
