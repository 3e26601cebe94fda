/**
 * Records the messages between a real containerd and an NRI plugin, as fixtures of the unit tests in nri:
 * Configure, Synchronize with a pod that runs, and the start and the end of a meshed pod.
 *
 *     npx tsx test/cluster/record-nri.ts VERSION FILE PLUGIN [ARGUMENT…]
 *
 * VERSION is one of the cluster's containerds, 2 or 2.3; PLUGIN finds the socket's directory in NRI_SOCKET_DIR. A line of FILE is one read: who sent it, and the bytes in hexadecimal.
 */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { outputs } from "../../build/paths";
import { Progress } from "../../build/progress";
import { NodePath, NriVariable } from "../../cni/contract";
import { defaultStanza } from "../support/default-stanza";
import { until } from "../support/until";
import { down, up } from "./cluster";
import { NriRelay } from "./nri-relay";
import { paths } from "./paths";
import { INJECTED, Kubectl, pod } from "./pods";
import { type ContainerdVersion, NRI_SOCKET } from "./runtimes";

const MESHED = { proxy: "sidecar", annotations: INJECTED } as const;
/** After this long without a byte, the runtime has nothing to say at the moment. */
const QUIET_MS = 2000;

async function record(version: ContainerdVersion, file: string, [program = "", ...args]: readonly string[]) {
  const machine = await up(new Progress(process.stdout), version);
  try {
    const kubectl = new Kubectl(machine);
    await kubectl.start(pod("running", MESHED));
    const directory = join(paths.state, "nri");
    const relay = await NriRelay.start(join(directory, "nri.sock"), machine.outside(NRI_SOCKET));
    const said = (what: string, bytes: number) => until(what, async () => relay.received > bytes, 150);
    const quiet = async () => {
      for (let before = -1; before < relay.received; await sleep(QUIET_MS)) before = relay.received;
    };
    const variables = {
      [NriVariable.socketDir]: directory,
      [NriVariable.netnsDir]: NodePath.netnsDir,
      [NriVariable.index]: "10",
      [NriVariable.stanza]: await defaultStanza(outputs.manifests, false),
    };
    const environment = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    try {
      await machine.daemon("nri-plugin", ["env", ...environment, resolve(program), ...args]);
      await said("the registration of the plugin", 0);
      await quiet();
      await kubectl.start(pod("small", MESHED));
      await quiet();
      const before = relay.received;
      await kubectl.stop("small");
      // The kubelet removes the sandbox of a pod that is gone up to two minutes later.
      await said("the removal of the sandbox", before);
      await quiet();
      await machine.endDaemon("nri-plugin");
    } finally {
      relay.stop();
    }
    await writeFile(file, relay.relayed.map(({ from, bytes }) => `${from} ${bytes.toString("hex")}\n`).join(""));
  } finally {
    await down();
  }
}

const [version, file, ...plugin] = process.argv.slice(2);
if (version === undefined || file === undefined || plugin.length === 0) {
  throw new Error("usage: npx tsx test/cluster/record-nri.ts VERSION FILE PLUGIN [ARGUMENT…]");
}
record(version as ContainerdVersion, file, plugin).catch((error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
