import { readFile } from "node:fs/promises";
import { suite } from "../support/requirements";
import { rounds } from "../support/rounds";
import { type Cost, measure, median, printTable } from "./costs";
import { CONFIGURATION, configure } from "./node";
import { withPeer } from "./peer";
import { INJECTED, type PodOptions, pod } from "./pods";
import { clusterSuite } from "./suite";

/** Rounds, and pods of each kind in a round: every chain takes its turn, so that other load affects all of them. */
const ROUNDS = rounds(2, 4);
const PODS = 5;
/** As the injector makes them: what the runtime passes decides. */
const MESHED: PodOptions = { proxy: "sidecar", annotations: INJECTED };
const KINDS: Readonly<Record<string, PodOptions>> = { "not meshed": {}, meshed: MESHED };

const peer = process.env["LINKERD_CNI_PEER"];

clusterSuite("the plugin's cost for a cluster", (cluster) => {
  const chains = new Map<string, string>();

  beforeAll(async () => {
    const plain = await readFile(CONFIGURATION, "utf8");
    // An installer that is gone shall leave the plugin in place, to be called from chains made here.
    await cluster.install("--set=repairController.enabled=true", "--set=uninstallOnStop=never");
    chains.set("none of the mesh", plain);
    chains.set("ours", await readFile(CONFIGURATION, "utf8"));
    if (peer !== undefined) chains.set("linkerd's", await withPeer(peer, plain));
  });

  describe("the start of a pod", () => {
    const found = new Map<string, Cost[]>();
    const median20 = (title: string) => median((found.get(title) ?? []).flatMap(({ sandboxMs }) => sandboxMs));
    const requests = (title: string) => {
      const each = (found.get(title) ?? []).map((cost) => cost.requests);
      return each.reduce((sum, one) => sum + one, 0) / each.length;
    };
    /** Requests for a pod that the chain's plugin of the mesh sends. */
    const sentBy = (who: string, kind: string) => requests(`${kind}: ${who}`) - requests(`${kind}: none of the mesh`);

    const takeTurn = async (who: string, configuration: string) => {
      await configure(configuration);
      for (const [kind, options] of Object.entries(KINDS)) {
        const title = `${kind}: ${who}`;
        const cost = await measure(cluster.machine, kind.replace(" ", "-"), PODS, options);
        found.set(title, [...(found.get(title) ?? []), cost]);
      }
    };

    beforeAll(async () => {
      // The installer would put ours back into the chain.
      const nowhere = { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } };
      const daemonSet = ["daemonset/linkerd-cni", "--namespace=linkerd-cni"];
      await cluster.kubectl.run("patch", ...daemonSet, `--patch=${JSON.stringify(nowhere)}`);
      await cluster.installerGone();
      await measure(cluster.machine, "warm", 3, {});
      for (let round = 0; round < ROUNDS; round++) {
        for (const [who, configuration] of chains) await takeTurn(who, configuration);
      }
    }, 900_000);
    afterAll(() => {
      const titles = [...found.keys()].sort();
      printTable(
        ["pod: plugin of the mesh in its chain", `sandbox, median ms of ${ROUNDS * PODS}`, "GET requests a pod"],
        titles.map((title) => [title, median20(title).toFixed(1), requests(title).toFixed(2)]),
      );
    });

    test.each(Object.keys(KINDS))("costs the API server nothing if the pod is %s", (kind) => {
      expect(sentBy("ours", kind)).toBeLessThan(0.5);
    });

    suite("beside linkerd's plugin", peer === undefined ? "LINKERD_CNI_PEER" : undefined, () => {
      test("asks for less; both redirect", async () => {
        for (const kind of Object.keys(KINDS)) {
          expect(sentBy("linkerd's", kind)).toBeGreaterThan(sentBy("ours", kind) + 0.5);
        }
        await cluster.kubectl.start(pod("client"));
        for (const who of ["ours", "linkerd's"]) {
          await configure(chains.get(who) ?? "");
          const name = `caught-by-${who.slice(0, 4)}`;
          const [address] = await cluster.kubectl.start(pod(name, MESHED));
          expect(await cluster.kubectl.dial("client", `${address}:8080`)).toMatchObject({ port: 4143 });
        }
      });
    });
  });
});
