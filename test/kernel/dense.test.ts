/** Many pods at once, with little memory. */
import { CALL_LOG } from "../../cni/contract";
import type { CallRecord } from "../../host/call-log";
import { config } from "../../plugin/protocol-cases.testing";
import { median } from "../cluster/costs";
import { ApiProcess } from "../support/api-process";
import { ApiStub, json } from "../support/api-server";
import { MemoryGroup } from "../support/memory-group";
import { PluginNode } from "../support/plugin";
import { kilobytesIn } from "../support/processes";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { rounds } from "../support/rounds";
import { MESHED, RuntimeNode, runtimeMissing, type Sandbox } from "../support/runtime-node";

jest.setTimeout(900_000);

const MIB = 1024 * 1024;
/** Memory limit of Multus' daemon for all plugins that it runs, from its manifest. */
const LIMIT = 50 * MIB;
/** They take 0.94 MiB each while all wait for the API server. */
const ADDS = rounds(40, 50);
/** The API server answers so late that all of them wait for it at once. */
const DELAY_MS = 2_000;
/** Calls that have not ended by then, because they wait for memory, are killed. */
const DEADLINE_S = 60;
const peer = process.env["LINKERD_CNI_PEER"] || undefined;

suite(`${ADDS} meshed ADDs side by side within ${LIMIT / MIB} MiB`, missing({ root: true, programs: ["nft"] }), () => {
  let api: ApiProcess;
  let plugin: PluginNode;
  beforeAll(async () => {
    const stub = await ApiStub.start(json(500, {}));
    plugin = await PluginNode.open(stub);
    stub.close();
    api = await ApiProcess.open(plugin.directory);
    api.prefer();
    await api.delay(DELAY_MS);
  });
  afterAll(async () => {
    api?.close();
    await plugin?.close();
  });

  /** Starts all ADDs at once. @returns pods that are redirected then, and processes that the kernel has killed */
  async function run(executable: string): Promise<{ readonly redirected: number; readonly kills: number }> {
    const group = await MemoryGroup.make(`linkerd-cni-dense-${process.pid}`, LIMIT);
    const pods = await Promise.all(Array.from({ length: ADDS }, () => plugin.node.pod()));
    const kubernetes = { kubeconfig: api.kubeconfig };
    const input = JSON.stringify({ ...config, kubernetes, "run-dir": api.runDir, linkerd: { "proxy-uid": 2102 } });
    const args = ["--signal=KILL", `${DEADLINE_S}`, ...group.enter([executable])];
    const changes = { CNI_ARGS: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=meshed", PATH: process.env["PATH"] ?? "" };
    await Promise.all(
      pods.map((pod) => plugin.node.run("timeout", args, { input, env: plugin.environment(pod, changes) })),
    );
    const rules = pods.map((pod) => plugin.node.within(pod, "nft", ["list", "ruleset"]));
    const redirected = rules.filter((text) => /redirect to :4143|REDIRECT/.test(text)).length;
    const kills = await group.kills();
    const peak = ((await group.peak()) / MIB).toFixed(1);
    process.stdout.write(`${redirected} of ${ADDS} pods redirected, ${kills} processes killed, at most ${peak} MiB\n`);
    for (const pod of pods) plugin.node.release(pod);
    await group.remove();
    return { redirected, kills };
  }

  test("ours all succeed", async () => {
    expect(await run(plugin.executable)).toEqual({ redirected: ADDS, kills: 0 });
  });

  // They keep both cores and the disk busy for a minute, over memory that is given and taken.
  const theirs = peer === undefined || rounds(0, 1) === 0 ? test.skip : test;
  theirs("the kernel kills some of linkerd's (needs LINKERD_CNI_PEER, and FULL=1)", async () => {
    const { redirected, kills } = await run(peer ?? "");
    expect(redirected).toBeLessThan(ADDS);
    expect(kills).toBeGreaterThan(0);
  });
});

/** Pods that are on the node at the same time: with FULL=1 more than twice as many as by default. */
const FULLEST = rounds(20, 250);
/** How many of them start side by side. */
const TOGETHER = 50;
/** It took 5.1 MiB at most while it followed the log of 250 calls. */
const INSTALLER_MIB = 8;
const RUNTIME = "containerd 2.2";

suite(`${FULLEST} meshed pods on a node under ${RUNTIME}`, runtimeMissing(RUNTIME), () => {
  let node: RuntimeNode;
  beforeAll(async () => {
    await buildPrograms();
    node = await RuntimeNode.start(RUNTIME);
    await node.install({ UNINSTALL_ON_STOP: "never" });
  });
  afterAll(() => node?.close());

  test(`all start, ${TOGETHER} side by side, stay redirected, and are in the log of calls; the installer stays small`, async () => {
    const begin = performance.now();
    const pods: Sandbox[] = [];
    while (pods.length < FULLEST) {
      const some = Math.min(TOGETHER, FULLEST - pods.length);
      pods.push(...(await Promise.all(Array.from({ length: some }, () => node.run(MESHED)))));
    }
    const seconds = (performance.now() - begin) / 1000;
    const redirected = await Promise.all(pods.map((pod) => node.isRedirected(pod)));
    expect(redirected.filter((is) => is)).toHaveLength(FULLEST);
    const log = (await node.machine.run(["cat", CALL_LOG])).trim().split("\n");
    const calls = log.map((line) => JSON.parse(line) as CallRecord);
    const added = calls.filter(({ verb, decision }) => verb === "ADD" && decision === "redirect");
    expect(added).toHaveLength(FULLEST);
    const times = added.map(({ ms }) => ms).sort((a, b) => a - b);
    const pid = await node.machine.pidOf("installer");
    const status = await node.machine.run(["cat", `/proc/${pid}/status`]);
    const peak = kilobytesIn(status, "VmHWM") / 1024;
    process.stdout.write(
      `${FULLEST} pods after ${seconds.toFixed(1)} s; ADD ${median(times).toFixed(1)} ms in the median, 99 of 100 within ` +
        `${times[Math.ceil(times.length * 0.99) - 1]} ms; installer at most ${peak.toFixed(1)} MiB\n`,
    );
    expect(peak).toBeLessThanOrEqual(INSTALLER_MIB);
  });
});
