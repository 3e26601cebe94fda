/** The chart on a node whose container runtime is CRI-O, from the installation to the bytes before it. */
import { readFile } from "node:fs/promises";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { CONFIGURATION } from "./node";
import { NriPlugin, restartRuntime } from "./nri";
import { INJECTED, type Pod, pod } from "./pods";
import { clusterSuite } from "./suite";

const CHAIN = ["bridge", "portmap", "linkerd-cni"];
const MESHED = { proxy: "sidecar", validator: true, annotations: INJECTED } as const;

clusterSuite(
  "the chart on CRI-O",
  (cluster) => {
    const nri = new NriPlugin(cluster);
    let before: Record<string, string>;
    let list: string;
    let client: string;
    let meshed: string;

    beforeAll(async () => {
      before = await cluster.directories();
      list = await readFile(CONFIGURATION, "utf8");
      await cluster.install();
      [client = "", meshed = ""] = await cluster.kubectl.start(pod("client"), pod("meshed", MESHED));
    });

    /** The answer to a connection from outside the mesh to a pod's application: of its proxy, or its own. */
    const answer = (address: string) => cluster.kubectl.dial("client", `${address}:8080`);
    const byProxy = (address: string) => ({ port: 4143, original: `${address}:8080` });

    /** Starts a meshed pod, and ends it. @returns whether it was redirected */
    async function redirects(name: string): Promise<boolean> {
      const [address = ""] = await cluster.kubectl.start(pod(name, { proxy: "sidecar", annotations: INJECTED }));
      const found = await answer(address);
      await cluster.kubectl.stop(name);
      return "port" in found && found.port === 4143;
    }

    test("the plugin is chained by a drop-in, and the owner's list is untouched", async () => {
      expect(await cluster.chain()).toEqual(CHAIN);
      expect(await readFile(CONFIGURATION, "utf8")).toBe(list);
      const log = await cluster.kubectl.run("logs", "--namespace=linkerd-cni", "daemonset/linkerd-cni");
      expect(log).toMatch(/\(dropin: cri-o:\/\/1\.34\.\S+ reads drop-ins\)/);
    });

    test("it passes annotations to the plugin: a pod that is not meshed costs no request", async () => {
      expect(await cluster.additions("default/client")).toMatchObject([{ decision: "skip", requests: 0 }]);
      expect(await cluster.additions("default/meshed")).toMatchObject([{ decision: "redirect" }]);
    });

    test("a meshed pod is redirected both ways; its proxy's own connections are not", async () => {
      const { kubectl } = cluster;
      expect(await answer(meshed)).toEqual(byProxy(meshed));
      const address = `${client}:8080`;
      expect(await kubectl.dial("meshed", address)).toEqual({ port: 4140, original: address });
      expect(await kubectl.dial("meshed", address, { container: "linkerd-proxy" })).toEqual({ served: 8080 });
    });

    test("restarted, it keeps pods with their addresses and rules, and new ones are redirected", async () => {
      await restartRuntime(cluster.machine);
      expect(await redirects("restarted")).toBe(true);
      expect(await cluster.kubectl.ready("meshed")).toBe(meshed);
      expect(await answer(meshed)).toEqual(byProxy(meshed));
      const { status } = await cluster.kubectl.json<Pod>("get", "pod", "meshed");
      expect(status.initContainerStatuses).toMatchObject([{ restartCount: 0 }]);
    });

    test("chaining becomes an edit, and a drop-in again", async () => {
      await cluster.upgrade("--reuse-values", "--set=chaining=edit");
      expect(await readFile(CONFIGURATION, "utf8")).toContain("linkerd-cni");
      expect(await redirects("by-edit")).toBe(true);
      await cluster.upgrade("--reuse-values", "--set=chaining=auto");
      expect(await readFile(CONFIGURATION, "utf8")).toBe(list);
      expect(await redirects("by-dropin")).toBe(true);
    });

    test("the NRI plugin alone redirects pods, and says so if its netnsDir is not CRI-O's", async () => {
      await cluster.upgrade("--reuse-values", "--set=nri.enabled=true", "--set=chained=false");
      await nri.rolledOut();
      expect(await cluster.chain()).toEqual(["bridge", "portmap"]);
      expect(await redirects("by-nri")).toBe(true);
      expect(await nri.log()).toMatch(/connected to cri-o v?1\.34/i);
      await cluster.upgrade("--reuse-values", "--set=nri.netnsDir=/run/elsewhere");
      // Beside the former plugin, which stays because the new one does not become ready.
      await until("what is wrong", async () =>
        (await nri.logs()).includes("is not in /run/elsewhere: set nri.netnsDir"),
      );
      await cluster.upgrade("--reuse-values", "--set=nri.netnsDir=/var/run/netns");
      await nri.rolledOut();
      expect(await redirects("by-nri-again")).toBe(true);
      await cluster.upgrade("--reuse-values", "--set=nri.enabled=false", "--set=chained=true");
    });

    test("helm uninstall puts every byte back; new pods start, old pods stop", async () => {
      expect(await cluster.chain()).toEqual(CHAIN);
      await cluster.uninstall();
      expect(await redirects("late")).toBe(false);
      await cluster.kubectl.run("delete", "pods", "--all", "--timeout=180s");
      expect(differences(before, await cluster.directories())).toEqual([]);
      expect(await cluster.failures()).toEqual([]);
    });
  },
  "crio",
);
