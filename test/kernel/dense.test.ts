/** Many pods at once, with little memory. */
import { config } from "../../plugin/protocol-cases.testing";
import { ApiProcess } from "../support/api-process";
import { ApiStub, json } from "../support/api-server";
import { MemoryGroup } from "../support/memory-group";
import { PluginNode } from "../support/plugin";
import { missing, suite } from "../support/requirements";
import { rounds } from "../support/rounds";

jest.setTimeout(300_000);

const MIB = 1024 * 1024;
/** What Multus' daemon has for all plugins that it runs, by its manifest. */
const LIMIT = 50 * MIB;
/** They take 0.94 MiB each while all wait for the API server. */
const ADDS = rounds(40, 50);
/** The API server answers so late that all of them wait for it at once. */
const DELAY_MS = 2_000;
/** What has not ended by then, because it waits for memory, is killed. */
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
    const input = JSON.stringify({ ...config, kubernetes, linkerd: { "proxy-uid": 2102 } });
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
