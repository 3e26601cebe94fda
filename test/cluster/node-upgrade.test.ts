/** A node whose container runtime and kubelet become others in place: its pods keep running. */
import { symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import { Progress } from "../../build/progress";
import { rounds } from "../support/rounds";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { NODE } from "./addresses";
import { buildContainerd } from "./binaries";
import { startDaemon } from "./cluster";
import { sandboxes } from "./faults";
import { kubelet, usePrograms } from "./node";
import { paths } from "./paths";
import { type Pod, pod } from "./pods";
import { containerd } from "./runtimes";
import { clusterSuite } from "./suite";

const otherKubelet = process.env["KUBELET_PEER"];
/** Meshed pods that run before the first change, and that are created during each. */
const PODS = rounds(8, 20);

clusterSuite(
  "a node whose programs are replaced in place",
  (cluster) => {
    let before: Record<string, string>;
    /** Addresses of all meshed pods so far. */
    const addresses: string[] = [];
    let changes = 0;

    const meshed = (batch: string) =>
      Array.from({ length: PODS }, (_, index) =>
        pod(`${batch}-${index}`, { proxy: index % 2 === 0 ? "sidecar" : "native", validator: true }),
      );

    beforeAll(async () => {
      before = await cluster.directories();
      await cluster.install();
      await cluster.kubectl.start(pod("client"));
      addresses.push(...(await cluster.kubectl.start(...meshed("old"))));
    });

    /** What the node says of its programs. */
    const versions = async () => {
      type Node = { status: { nodeInfo: { kubeletVersion: string; containerRuntimeVersion: string } } };
      const { status } = await cluster.kubectl.json<Node>("get", "node", NODE.name);
      return `${status.nodeInfo.kubeletVersion}, ${status.nodeInfo.containerRuntimeVersion}`;
    };

    /** How often containers have started again, of all pods. */
    const restarts = async () => {
      type Statuses = { status: { containerStatuses?: readonly { restartCount: number }[] } };
      const { items } = await cluster.kubectl.json<{ items: (Pod & Statuses)[] }>("get", "pods", "--all-namespaces");
      return items.flatMap(({ metadata, status }) =>
        [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
          .filter(({ restartCount }) => restartCount > 0)
          .map(({ restartCount }) => `${metadata.name}: ${restartCount}`),
      );
    };

    /** Replaces programs while the kubelet is stopped and meshed pods wait for it. @returns the versions then */
    const replace = async (work: () => Promise<void>) => {
      const [was, chain, files, old] = [
        await versions(),
        await cluster.chain(),
        Object.keys(await cluster.directories()),
        await sandboxes(cluster.machine, []),
      ];
      const additions = (await cluster.additions(/./)).length;
      await cluster.machine.endDaemon(kubelet.name);
      const waiting = meshed(`new-${changes++}`);
      await cluster.kubectl.apply(...waiting);
      await work();
      await startDaemon(cluster.machine, kubelet);
      await until("the node's new versions", async () => (await versions()) !== was);
      await cluster.kubectl.run("wait", "node", NODE.name, "--for=condition=Ready", "--timeout=180s");
      addresses.push(...(await cluster.kubectl.start(...waiting)));
      await cluster.rolledOut();

      const all = addresses.map((address) => `${address}:8080`);
      expect(await cluster.kubectl.dialAll("client", all)).toEqual(all.map((original) => ({ port: 4143, original })));
      expect(await restarts()).toEqual([]);
      expect(await sandboxes(cluster.machine, [])).toEqual(expect.arrayContaining(old));
      const added = (await cluster.additions(/./)).slice(additions).map(({ pod: name }) => name);
      expect(added.sort()).toEqual(waiting.map(({ metadata }) => `default/${metadata.name}`).sort());
      expect(await cluster.chain()).toEqual(chain);
      expect(Object.keys(await cluster.directories())).toEqual(files);
      const now = await versions();
      process.stdout.write(
        `${was} -> ${now}: ${all.length} meshed pods, ${waiting.length} of them new, all redirected\n`,
      );
      return now;
    };

    /** The same with another containerd. */
    const replaceContainerd = (version: "2" | "2.3") =>
      replace(async () => {
        const built = await buildContainerd(version, new Progress(process.stdout), new AbortController().signal);
        await cluster.machine.endDaemon(containerd.name);
        await usePrograms(built);
        await startDaemon(cluster.machine, containerd);
      });

    test("containerd 2.2 by 2.3, and back", async () => {
      const first = await versions();
      expect(await replaceContainerd("2.3")).toContain("containerd://2.3");
      expect(await replaceContainerd("2")).toBe(first);
    });

    (otherKubelet === undefined ? test.skip : test)(
      "the kubelet by one of another version, and back (needs KUBELET_PEER)",
      async () => {
        const first = await versions();
        const link = join(paths.programs, kubelet.name);
        await replace(() => symlink(otherKubelet ?? "", link));
        expect(await replace(() => unlink(link))).toBe(first);
      },
    );

    test("an uninstallation then puts every byte back", async () => {
      await cluster.uninstall();
      expect(differences(before, await cluster.directories())).toEqual([]);
    });
  },
  "2",
);
