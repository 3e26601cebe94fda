import { MULTUS_NAME } from "../../cni/contract";
import type { LeaseObject } from "../../kubernetes/types";
import { MultusApi, OPERATOR_NAMESPACE, OperatorProcess } from "../support/multus";
import { buildPrograms } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

suite("the operator's leader with a real API server, with the chart's rights", realApiMissing(), () => {
  let cluster!: MultusApi;
  let operators: OperatorProcess[] = [];

  beforeAll(async () => {
    [cluster] = await Promise.all([MultusApi.start(), buildPrograms()]);
    await cluster.installMultus();
    await cluster.configure({ type: "linkerd-cni" });
    await cluster.namespace("shop", "enabled");
  });

  afterEach(async () => {
    await Promise.all(operators.map((operator) => operator.end("SIGKILL")));
    operators = [];
    await cluster.api.request({ method: "DELETE", path: leasePath });
  });

  afterAll(async () => {
    await cluster?.close();
  });

  const leasePath = `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases/${MULTUS_NAME}`;
  const lease = async () => (await cluster.api.json<LeaseObject>({ path: leasePath })).spec ?? {};
  const made = (seconds?: number) =>
    until("the definition", async () => (await cluster.definition("shop")) !== undefined, seconds);
  const remove = () => cluster.api.json({ method: "DELETE", path: cluster.definitionPath("shop") });
  const wrote = ({ log }: OperatorProcess) => log.filter((line) => line.includes("the definition namespace=")).length;

  async function start(name: string, ...args: readonly string[]): Promise<OperatorProcess> {
    const operator = await OperatorProcess.start(cluster, name, args);
    operators.push(operator);
    await until(`${name} to be ready`, async () => (await operator.metric("leader")) >= 0);
    return operator;
  }

  /** One that leads, and one that waits. */
  async function pair(): Promise<readonly [OperatorProcess, OperatorProcess]> {
    const leader = await start("leader");
    await until("the first to lead", async () => (await leader.metric("leader")) === 1);
    return [leader, await start("successor")];
  }

  async function tookOver(successor: OperatorProcess): Promise<void> {
    const start = performance.now();
    await until("the other to lead", () => successor.said("leads: "));
    process.stdout.write(`took over after ${((performance.now() - start) / 1_000).toFixed(1)} s\n`);
  }

  test("a leader that was paused does not write when it continues", async () => {
    const [leader, successor] = await pair();
    await made();
    leader.child.kill("SIGSTOP");
    await tookOver(successor);
    const before = wrote(leader);
    await remove();
    await made();
    leader.child.kill("SIGCONT");
    await until("its word", () => leader.said("does not lead any more"));
    await remove();
    await made();
    await until("its word about both", () => wrote(successor) === 2);
    expect(wrote(leader)).toBe(before);
    expect(await leader.metric("leader")).toBe(0);
  });

  test("a lease changed by another client stays the leader's", async () => {
    const [leader, successor] = await pair();
    await cluster.merge(leasePath, { metadata: { annotations: { seen: "1" } } });
    const { renewTime } = await lease();
    await until("two renewals", async () => {
      const spec = await lease();
      return spec.renewTime !== renewTime && spec.holderIdentity?.startsWith("leader_") === true;
    });
    expect([leader, successor].map(({ log }) => log.filter((line) => line.includes("lead")).length)).toEqual([1, 0]);
  });

  test("without an election it writes at once, and there is no lease", async () => {
    await remove().catch(() => undefined);
    const operator = await start("alone", "-leader-elect=false");
    await made();
    expect(await operator.metric("leader")).toBe(1);
    expect((await cluster.api.request({ path: leasePath })).status).toBe(404);
  });
});
