/**
 * What pods of one tenant cost those of others under NRI: while they do their worst, meshed pods start, and each has its
 * rules before its first container runs. NRI_HOSTILE=full takes a minute, else it is a quarter of that.
 */
import { HostileNeighbour } from "./hostile";
import { ADMIN_PORT, inPod, NriPlugin } from "./nri";
import { INJECTED, pod, until } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const MILLISECONDS = process.env["NRI_HOSTILE"] === "full" ? 60_000 : 15_000;
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
      const hostile = [0, 1, 2].map((each) => pod(`hostile-${each}`, { annotations: many }));
      await kubectl.create(...hostile, pod("client"), pod("ruled", { proxy: "sidecar", annotations: INJECTED }));
      await Promise.all(
        [...hostile.map(({ metadata }) => metadata.name), "client", "ruled"].map((name) => kubectl.ready(name)),
      );
      const neighbour = new HostileNeighbour(machine);
      await neighbour.addRules("ruled", RULES);
      // It connects again, and is told of the pods that run: three with all their annotations.
      await plugin.restart();
      await plugin.rolledOut();
      const crowd = await neighbour.crowd(await plugin.address(), ADMIN_PORT);
      const long = pod("long", {
        proxy: "sidecar",
        annotations: { ...INJECTED, "config.linkerd.io/skip-subnets": LONG_LIST },
      });
      await kubectl.create(long);
      const restarts = await plugin.restarts();
      const stream = new PodStream(kubectl, "client", { validator: true, annotations: INJECTED });
      const end = Date.now() + MILLISECONDS;
      for (let round = 0; Date.now() < end; round++) {
        await stream.check();
        const again = `hostile-${round % 3}`;
        await kubectl.stop(again);
        await kubectl.create(pod(again, { annotations: many }));
        await kubectl.ready(again);
      }
      const { started, notRedirected, late } = await stream.stop();
      await crowd.leave();
      process.stdout.write(`${started} meshed pods started beside hostile ones\n`);
      expect(notRedirected).toEqual([]);
      expect(late).toEqual([]);
      expect(started).toBeGreaterThan(0);
      expect(await plugin.restarts()).toEqual(restarts);
      expect(await plugin.metric("connected")).toBe(1);
      expect(await plugin.log()).not.toMatch(/closed the connection/);
      await until("the pod with the long list to be refused", async () =>
        (await kubectl.run("events", "--for=pod/long")).includes("config.linkerd.io/skip-subnets"),
      );
      expect(await inPod(machine, "ruled", "nft", "list", "tables")).toContain("linkerd-cni");
    }, 600_000);
  },
  "2",
);
