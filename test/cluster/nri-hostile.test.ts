/**
 * What pods of one tenant cost those of others under NRI: while they do their worst, meshed pods start, and each has its
 * rules before its first container runs. FULL=1 takes a minute, else it is a quarter of that.
 */

import { rounds } from "../support/rounds";
import { until } from "../support/until";
import { ContainerRuntime } from "./cri";
import { HostileNeighbour } from "./hostile";
import { ADMIN_PORT, inPod, NriPlugin } from "./nri";
import { INJECTED, pod } from "./pods";
import { containerd } from "./runtimes";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const MILLISECONDS = rounds(15_000, 60_000);
/** Annotations of each pod; the API server takes 256 KiB of them. */
const ANNOTATIONS = 60_000;
/** Rules in the namespace of a pod that may set its own. */
const RULES = 100_000;
const LONG_LIST = "::/0,".repeat(51_000);

const many = Object.fromEntries(Array.from({ length: ANNOTATIONS }, (_, at) => [at.toString(36), ""]));

clusterSuite(
  "a hostile tenant of a node with the NRI plugin, on containerd 2.2",
  (cluster) => {
    const plugin = new NriPlugin(cluster);

    test("keeps no meshed pod from its rules, and no probe from its answer", async () => {
      const { kubectl, machine } = cluster;
      await cluster.install("--set=nri.enabled=true", "--set=chained=false");
      await plugin.rolledOut();
      // Made by the runtime itself: the API server takes such a pod, but has its own work with it.
      const runtime = new ContainerRuntime(machine.outside(containerd.socket));
      const hostile = (round: number) =>
        Promise.all(
          [0, 1, 2].map((each) => {
            const name = `hostile-${round}-${each}`;
            return runtime.run({ namespace: "default", name, uid: name, labels: {}, annotations: many });
          }),
        );
      await kubectl.start(pod("client"), pod("ruled", { proxy: "sidecar", annotations: INJECTED }));
      const neighbour = new HostileNeighbour(machine);
      await neighbour.addRules("ruled", RULES);
      const long = pod("long", {
        proxy: "sidecar",
        annotations: { ...INJECTED, "config.linkerd.io/skip-subnets": LONG_LIST },
      });
      await kubectl.create(long);
      const stream = new PodStream(kubectl, "client", { validator: true });
      let pods = await hostile(0);
      // It connects again, and the runtime names the running pods: the kubelet ends unknown ones later.
      await plugin.restart();
      await plugin.rolledOut();
      const crowd = await neighbour.crowd(await plugin.address(), ADMIN_PORT);
      const end = Date.now() + MILLISECONDS;
      for (let round = 1; Date.now() < end; round++) {
        await stream.check();
        // Three at a time: the kubelet lists all of them each second, with their annotations, and thirty are too many for it.
        // It ends them itself, too, and then one of the two calls may fail.
        for (const id of pods) await runtime.remove(id).catch(() => undefined);
        pods = await hostile(round);
      }
      const { started, notRedirected, late } = await stream.stop();
      await crowd.leave();
      runtime.close();
      process.stdout.write(`${started} meshed pods started beside hostile ones\n`);
      expect(notRedirected).toEqual([]);
      expect(late).toEqual([]);
      expect(started).toBeGreaterThan(0);
      expect(await plugin.restarts()).toBe(0);
      expect(await plugin.metric("connected")).toBe(1);
      // On a busy machine an answer may take longer than the runtime waits, but not again and again.
      expect((await plugin.log()).split("closed the connection").length).toBeLessThanOrEqual(2);
      await until("the pod with the long list to be refused", async () =>
        (await kubectl.run("events", "--for=pod/long")).includes("config.linkerd.io/skip-subnets"),
      );
      expect(await inPod(machine, "ruled", "nft", "list", "tables")).toContain("linkerd-cni");
    }, 600_000);
  },
  "2",
);
