import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Progress } from "../build/progress";
import { NodePath } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { ProxyDefault } from "../cni/stanza";
import { ApiStub } from "../test/support/api-server";
import { CniRunner, loadNetwork } from "../test/support/cni-runner";
import { defaultStanza } from "../test/support/default-stanza";
import { differences, snapshot } from "../test/support/snapshot";
import { Demonstration } from "./demonstration";
import { DemoNode } from "./node";
import { type Report, render, succeeded } from "./report";
import { Sandbox } from "./sandbox";
import * as scene from "./scene";

/** The input of the process inside the sandbox. */
export interface Handover {
  readonly json: boolean;
  /** The built executable. */
  readonly executable: string;
  /** Folder of the default manifests. */
  readonly manifests: string;
  /** Bundled scripts. */
  readonly podProcess: string;
  readonly primaryPlugin: string;
  /** Why this machine does not allow network namespaces; the demonstration then shows only the node's files. */
  readonly obstacle?: string;
}

/** The programs that run pods. */
interface Scenery {
  readonly node: DemoNode;
  readonly sandbox: Sandbox;
  readonly api: ApiStub;
  readonly pods: readonly scene.DemoPod[];
  readonly progress: Progress;
  readonly proxyUid: number | undefined;
}

const ONE_USER =
  "the proxy's own user 2102, whose connections go out directly: this sandbox has one user (run as root, or with uidmap and /etc/subuid)";

/** True if a user id is mapped: always in the initial user namespace. */
async function userExists(uid: number): Promise<boolean> {
  const map = (await readFile("/proc/self/uid_map", "utf8")).trim().split("\n");
  return map.some((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return uid >= first && uid < first + count;
  });
}

/** Pods, traffic and checks on a node whose chain is complete. */
async function runPods({ node, sandbox, api, pods, progress, proxyUid }: Scenery): Promise<Partial<Report>> {
  const runner = new CniRunner(await loadNetwork(node.netDir), [node.binDir]);
  const demonstration = new Demonstration(runner, sandbox, api);
  await sandbox.listen(undefined, scene.outsideListeners);
  for (const pod of pods) await progress.step(`start pod ${pod.name}`, () => demonstration.startPod(pod));
  const probes = await progress.step("send traffic", () => demonstration.probe(proxyUid));
  await progress.step("check: the kernel's rules match", () => demonstration.check());
  const rules = await demonstration.rules(scene.meshed.name);
  await progress.step("stop the pods", () => demonstration.stopPods());
  return { adds: demonstration.adds, probes, ...(rules === undefined ? {} : { rules }) };
}

async function demonstrate(handover: Handover, directory: string, progress: Progress): Promise<Report> {
  const { obstacle } = handover;
  const proxyUid = (await userExists(ProxyDefault.uid)) ? ProxyDefault.uid : undefined;
  const pods = [scene.meshed, scene.unmeshed];
  const sandbox =
    obstacle === undefined
      ? await progress.step("make a node's network", () => Sandbox.create(handover.podProcess))
      : undefined;
  const ipv6 = sandbox?.families.includes(6) ?? false;
  const api = await ApiStub.start(scene.answer(pods));
  try {
    // Without a sandbox, /run is that of the machine.
    const runDir = sandbox === undefined ? directory : NodePath.runDir;
    const node = new DemoNode(join(directory, "node"), handover.executable, runDir);
    await node.create(handover.primaryPlugin, ipv6);
    const stanza = await defaultStanza(handover.manifests, ipv6);
    const before = await snapshot(node.directory);
    await progress.step("install: executable, chain", () => node.install(api, stanza));
    const seen = sandbox === undefined ? {} : await runPods({ node, sandbox, api, pods, progress, proxyUid });
    await progress.step("uninstall", () => node.uninstall());
    return {
      adds: [],
      probes: [],
      ...seen,
      differences: differences(before, await snapshot(node.directory)),
      notShown: obstacle === undefined ? notShown(proxyUid, ipv6, seen) : [`pods and their traffic: ${obstacle}`],
    };
  } finally {
    sandbox?.close();
    api.close();
  }
}

function notShown(proxyUid: number | undefined, ipv6: boolean, seen: Partial<Report>): string[] {
  return [
    ...(proxyUid === undefined ? [ONE_USER] : []),
    ...(ipv6 ? [] : ["IPv6, which this kernel does not have"]),
    ...(seen.rules === undefined ? ["the rules as text, since nft is not installed (CHECK compared them)"] : []),
  ];
}

async function main(handover: Handover): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "linkerd-cni-"));
  try {
    const progress = new Progress(handover.json ? process.stderr : process.stdout);
    const report = await demonstrate(handover, directory, progress);
    process.stdout.write(handover.json ? `${JSON.stringify(report, null, 2)}\n` : render(report));
    process.exitCode = succeeded(report) ? 0 : 1;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

main(JSON.parse(process.argv[2] ?? "{}") as Handover).catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`);
  process.exit(1);
});
