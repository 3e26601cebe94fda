import Table from "cli-table3";
import { suite } from "../support/requirements";
import { type Cost, measure, memoryOf } from "./costs";
import { chainPeer } from "./peer";
import { type PodOptions, pod, until } from "./pods";
import { clusterSuite } from "./suite";

const PODS = 20;
const MESHED: PodOptions = { proxy: "sidecar" };
const MIB = 2 ** 20;

const print = (head: readonly string[], rows: readonly (readonly string[])[]) => {
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  table.push(...rows.map((row) => [...row]));
  process.stdout.write(`${table.toString()}\n`);
};

clusterSuite("what the plugin costs a cluster", (cluster) => {
  const costs = new Map<string, Cost>();
  const take = async (title: string, name: string, options: PodOptions) => {
    const cost = await measure(cluster.machine, name, PODS, options);
    costs.set(title, cost);
    return cost;
  };
  const requestsOfPlugin = (title: string, plain: string) =>
    (costs.get(title)?.requests ?? Number.NaN) - (costs.get(plain)?.requests ?? Number.NaN);

  beforeAll(async () => {
    // Both kinds of pods without a plugin of the mesh: what is measured later is compared with these.
    await measure(cluster.machine, "warm", 3, {});
    await take("not chained", "plain", {});
    await take("not chained, two containers", "plain-two", MESHED);
    await cluster.install();
  });
  afterAll(() => {
    const row = ([title, { sandboxMs, requests }]: [string, Cost]) => [
      title,
      sandboxMs.toFixed(1),
      requests.toFixed(2),
    ];
    print(["pods", "sandbox, median ms", "GET requests a pod"], [...costs].map(row));
  });

  test("a pod that is not meshed costs the API server nothing", async () => {
    await take("chained, not meshed", "chained", {});
    expect(requestsOfPlugin("chained, not meshed", "not chained")).toBeLessThan(0.5);
  });

  test("a meshed pod costs the API server at most two requests", async () => {
    await take("chained, meshed", "meshed", MESHED);
    const requests = requestsOfPlugin("chained, meshed", "not chained, two containers");
    expect(requests).toBeGreaterThan(0.5);
    expect(requests).toBeLessThan(2.5);
  });

  test("the memory of the installer, and of the repair controller, is within 100 MiB each", async () => {
    await cluster.upgrade("--set=repairController.enabled=true");
    // A process that has just begun uses less than it will.
    const settled = Date.now() + 15_000;
    let found: Record<string, number> = {};
    await until("the kubelet's figures", async () => {
      found = await memoryOf(cluster.kubectl, "linkerd-cni", settled);
      return Object.keys(found).length === 2 && Object.values(found).every((bytes) => bytes > 0);
    });
    print(
      ["container", "memory, MiB"],
      Object.entries(found).map(([name, bytes]) => [name, (bytes / MIB).toFixed(1)]),
    );
    for (const bytes of Object.values(found)) expect(bytes).toBeLessThan(100 * MIB);
  });

  const peer = process.env["LINKERD_CNI_PEER"];
  suite("linkerd's plugin in the place of ours", peer === undefined ? "LINKERD_CNI_PEER" : undefined, () => {
    beforeAll(async () => {
      await cluster.uninstall();
      await chainPeer(peer ?? "");
    });

    test("redirects, and asks the API server for more", async () => {
      await take("linkerd's, not meshed", "theirs", {});
      await take("linkerd's, meshed", "theirs-meshed", MESHED);
      const [client, meshed] = [pod("client"), pod("caught", MESHED)];
      const [, address] = await cluster.kubectl.start(client, meshed);
      expect(await cluster.kubectl.dial("client", `${address}:8080`)).toMatchObject({ port: 4143 });
      for (const [title, ours, plain] of [
        ["linkerd's, not meshed", "chained, not meshed", "not chained"],
        ["linkerd's, meshed", "chained, meshed", "not chained, two containers"],
      ] as const) {
        expect(requestsOfPlugin(title, plain)).toBeGreaterThan(requestsOfPlugin(ours, plain) + 0.5);
      }
    });
  });
});
