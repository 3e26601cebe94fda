import Table from "cli-table3";
import { type Cost, measure, memoryOf } from "./costs";
import { type PodOptions, until } from "./pods";
import { clusterSuite } from "./suite";

const PODS = 20;
const MESHED: PodOptions = { proxy: "sidecar" };

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
    const table = new Table({
      head: ["pods", "sandbox, median ms", "GET requests a pod"],
      style: { head: [], border: [] },
    });
    for (const [title, { sandboxMs, requests }] of costs)
      table.push([title, sandboxMs.toFixed(1), requests.toFixed(2)]);
    process.stdout.write(`${table.toString()}\n`);
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

  test("the installer's memory is within 100 MiB", async () => {
    let bytes = 0;
    await until("the kubelet's figure", async () => {
      bytes = (await memoryOf(cluster.kubectl, "linkerd-cni"))["install-cni"] ?? 0;
      return bytes > 0;
    });
    process.stdout.write(`memory of install-cni: ${(bytes / 2 ** 20).toFixed(1)} MiB\n`);
    expect(bytes).toBeLessThan(100 * 2 ** 20);
  });
});
