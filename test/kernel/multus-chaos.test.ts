import { setTimeout as sleep } from "node:timers/promises";
import { CRD, type Definition, MultusApi, OperatorProcess } from "../support/multus";
import { buildPrograms } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { rounds } from "../support/rounds";
import { until } from "../support/until";

jest.setTimeout(400_000);

const NAMESPACES = ["linkerd", ...Array.from({ length: 11 }, (_, index) => `team-${index}`)];
/** A namespace that comes when everything is as it has to be. */
const LAST = "last";
const STEPS = rounds(80, 240);
const PACE = 240 / STEPS;
/** A lease's end, the longest pause of a retry and the longest one of a contest. */
const SETTLE_SECONDS = 200;
const FOREIGN = '{"type":"other"}';
const OURS = { "app.kubernetes.io/managed-by": "linkerd-multus" };

/** Numbers from 0 up to 1, the same ones for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Item {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
}

const wants = ({ metadata: { name, annotations } }: Item) =>
  name === "linkerd" || annotations?.["linkerd.io/multus"] === "enabled";

/** Describes what is wrong with a namespace. */
function flaw(namespace: Item, definition: Definition | undefined, uid: number): string | undefined {
  const { name } = namespace.metadata;
  if (definition === undefined) return wants(namespace) ? `${name} has none` : undefined;
  const { config } = definition.spec;
  if (definition.metadata.labels?.["app.kubernetes.io/managed-by"] !== "linkerd-multus") {
    return config === FOREIGN ? undefined : `${name}: a foreign one was changed: ${config}`;
  }
  if (!wants(namespace)) return `${name} has one`;
  return JSON.parse(config).linkerd?.["proxy-uid"] === uid ? undefined : `${name}: ${config}`;
}

suite("two operators while everything changes at once, on a real API server", realApiMissing(), () => {
  let cluster!: MultusApi;
  const operators: OperatorProcess[] = [];

  beforeAll(async () => {
    [cluster] = await Promise.all([MultusApi.start(), buildPrograms()]);
    await cluster.installMultus();
    await Promise.all(NAMESPACES.map((name) => cluster.namespace(name)));
  });

  afterAll(async () => {
    await Promise.all(operators.map((operator) => operator.end("SIGKILL")));
    await cluster?.close();
  });

  const join = async () => {
    operators.push(await OperatorProcess.start(cluster, `operator-${operators.length}`));
  };
  const configure = (uid: number) => cluster.configure({ type: "linkerd-cni", linkerd: { "proxy-uid": uid } });
  /** Changes that may fail because a definition does not exist, or already exists. */
  const attempt = (method: "DELETE" | "POST" | "PATCH", path: string, body?: object) =>
    cluster.api.request({
      method,
      path,
      ...(body === undefined ? {} : { body }),
      ...(method === "PATCH" ? { contentType: "application/merge-patch+json" } : {}),
    });
  const foreign = {
    apiVersion: "k8s.cni.cncf.io/v1",
    kind: CRD.spec.names.kind,
    metadata: { name: "linkerd-cni" },
    spec: { config: FOREIGN },
  };

  /** Changes by users to a namespace; one that is listed twice is more likely. */
  const deeds: readonly ((name: string) => Promise<unknown>)[] = [
    (name) => cluster.annotate(name, "enabled"),
    (name) => cluster.annotate(name, "enabled"),
    (name) => cluster.annotate(name, "disabled"),
    (name) => cluster.annotate(name, null),
    (name) => attempt("DELETE", cluster.definitionPath(name)),
    (name) => attempt("PATCH", cluster.definitionPath(name), { metadata: { annotations: { seen: "1" } } }),
    (name) => attempt("PATCH", cluster.definitionPath(name), { metadata: { labels: OURS } }),
    (name) => attempt("POST", cluster.definitionsPath(name), foreign),
  ];

  /** Faults of the cluster, by step of 240. */
  const events: Readonly<Record<number, () => Promise<unknown>>> = {
    30: () => configure(2200),
    60: () => operators[0]?.end("SIGKILL") ?? Promise.resolve(),
    70: join,
    90: () => cluster.configure("{"),
    110: () => configure(2300),
    150: async () => {
      await cluster.api.down();
      await cluster.api.up();
    },
    180: () => operators[1]?.end("SIGTERM") ?? Promise.resolve(),
    190: join,
    200: () => configure(2400),
  };

  /** Describes everything that is wrong. */
  async function wrong(uid: number): Promise<string[]> {
    const namespaces = await cluster.api.json<{ items: readonly Item[] }>({ path: "/api/v1/namespaces" });
    const definitions = await cluster.api.json<{ items: readonly Definition[] }>({ path: cluster.definitionsPath() });
    const found = new Map(definitions.items.map((each) => [each.metadata.namespace, each]));
    return namespaces.items
      .map((namespace) => flaw(namespace, found.get(namespace.metadata.name), uid))
      .filter((each) => each !== undefined);
  }

  const versions = async () => {
    const { items } = await cluster.api.json<{ items: readonly Definition[] }>({ path: cluster.definitionsPath() });
    return items.filter(({ metadata }) => metadata.namespace !== LAST).map(({ metadata }) => metadata.resourceVersion);
  };

  test("everything ends as it has to be, and then nothing is written any more", async () => {
    const seed = Number(process.env["SEED"]);
    process.stdout.write(`seed ${seed}\n`);
    const next = random(seed);
    const any = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
    await configure(2102);
    await Promise.all([join(), join()]);
    await until("a leader", () => operators.some((operator) => operator.said("leads: ")));
    for (let step = 0; step < STEPS; step++) {
      for (let each = step * PACE; each < (step + 1) * PACE; each++) await events[each]?.();
      await any(deeds)(any(NAMESPACES));
      await sleep(next() * 100);
    }
    let left: string[] = [];
    const settled = async () => {
      left = await wrong(2400);
      await sleep(200);
      return left.length === 0;
    };
    await until("all to be right", settled, SETTLE_SECONDS).catch((error: Error) => {
      throw new Error(`${error.message}: ${left.join("; ")}`);
    });
    const before = await versions();
    expect(before.length).toBeGreaterThan(0);
    // The leader's queue is in order: whatever it would still write comes before this.
    await cluster.namespace(LAST, "enabled");
    await until(`the definition in ${LAST}`, async () => (await cluster.definition(LAST)) !== undefined);
    expect(await versions()).toEqual(before);
    const leading = await Promise.all(operators.slice(2).map((operator) => operator.metric("leader")));
    expect(leading.reduce((sum, each) => sum + each, 0)).toBe(1);
  });
});
