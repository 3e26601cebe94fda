import { stripVTControlCharacters } from "node:util";
import pc from "picocolors";
import { leadsSomewhere } from "../links.testing";
import {
  cluster,
  configured,
  daemonSet,
  multus,
  NAMESPACE,
  onTwo,
  operator,
  pod,
  READY,
  rolledOut,
  said,
  stanza,
  underMultus,
  unready,
  webhook,
} from "./cluster.testing";
import { requiredGrants } from "./grants";
import { inspect } from "./inspect";
import type { CheckedPod } from "./objects";
import { reportText } from "./report";
import type { Snapshot } from "./snapshot";

/** What is other than well, and all that is said then. */
const cases: readonly (readonly [string, Partial<Snapshot>, readonly string[]])[] = [
  ["nothing", {}, []],
  ["no namespace", { namespaceObject: { value: undefined } }, ["error: namespace linkerd-cni is not there"]],
  [
    "no ConfigMap",
    { configMap: { value: undefined } },
    ["error: ConfigMap linkerd-cni/linkerd-cni-config is not there"],
  ],
  [
    "a ConfigMap that may not be read",
    { configMap: { problem: "kubectl get: Forbidden" } },
    ["error: kubectl get: Forbidden"],
  ],
  [
    "a ConfigMap of another kind",
    { configMap: { value: { metadata: { name: "linkerd-cni-config", namespace: NAMESPACE } } } },
    [
      "error: ConfigMap linkerd-cni/linkerd-cni-config: has no key cni_network_config, which holds the plugin's configuration",
    ],
  ],
  [
    "a stanza that is no object",
    { configMap: stanza("[]") },
    ["error: ConfigMap linkerd-cni/linkerd-cni-config: cni_network_config is not a JSON object"],
  ],
  [
    "a field of another type",
    { configMap: configured((each) => ({ ...each, linkerd: { "proxy-uid": "root" } })) },
    ['error: linkerd.proxy-uid: "root" is not a whole number up to 4294967294'],
  ],
  [
    "a list that pods would stumble over",
    { configMap: configured((each) => ({ ...each, linkerd: { "inbound-ports-to-ignore": ["9-1"] } })) },
    ['error: linkerd.inbound-ports-to-ignore of network linkerd-cni: "9-1" is not a port or a range low-high'],
  ],
  [
    // Kustomize changes no namespace in a text: the installer names its own pods by where it runs.
    "own pods elsewhere",
    { configMap: configured((each) => ({ ...each, "own-pods": { namespace: "old", daemonset: "linkerd-cni" } })) },
    [],
  ],
  [
    "two DaemonSets",
    { daemonSets: { value: [daemonSet(), { metadata: { name: "linkerd-cni", namespace: "linkerd" } }] } },
    ["error: linkerd/linkerd-cni writes the same files on the nodes"],
  ],
  [
    "no DaemonSet",
    { daemonSet: { value: undefined }, daemonSets: { value: [] } },
    ["error: DaemonSet linkerd-cni/linkerd-cni is not there"],
  ],
  [
    "a change that is not acted on",
    rolledOut({ observedGeneration: 0 }),
    ["error: its last change has not been acted on"],
  ],
  ["old pods", rolledOut({ updatedNumberScheduled: 1 }), ["error: 1 of 2 pods are of an older version"]],
  [
    "old pods that nobody replaces",
    rolledOut({ updatedNumberScheduled: 1 }, { updateStrategy: { type: "OnDelete" } }),
    ["error: 1 of 2 pods are of an older version, and are replaced when they are deleted"],
  ],
  [
    "a container that does not start",
    onTwo({ containerStatuses: [{ name: "install-cni", state: { waiting: { reason: "CrashLoopBackOff" } } }] }),
    ["error: pod linkerd-cni-two is not ready: container install-cni: CrashLoopBackOff"],
  ],
  [
    "an installer that says why",
    {
      ...onTwo({ conditions: unready, containerStatuses: [{ name: "install-cni", state: { running: {} } }] }),
      warnings: new Map([["linkerd-cni-two", "linkerd-cni: error: no valid CNI configuration in /etc/cni/net.d"]]),
    },
    ["error: pod linkerd-cni-two is not ready: it says: no valid CNI configuration in /etc/cni/net.d"],
  ],
  [
    "an installer that says nothing",
    onTwo({ conditions: unready }),
    ["error: pod linkerd-cni-two is not ready: containers with unready status: [install-cni]"],
  ],
  [
    "another container that is not ready",
    {
      ...onTwo({
        conditions: [
          { type: "Ready", status: "False", message: "containers with unready status: [repair-controller]" },
        ],
        containerStatuses: [
          { name: "install-cni", ready: true, state: { running: {} } },
          { name: "repair-controller", ready: false, state: { running: {} } },
        ],
      }),
      warnings: new Map([["linkerd-cni-two", "linkerd-cni: warn: 10-calico.conflist was changed back"]]),
    },
    ["error: pod linkerd-cni-two is not ready: containers with unready status: [repair-controller]"],
  ],
  [
    "a pod that is ending, though it is ready",
    onTwo({ conditions: READY }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    ["error: pod linkerd-cni-two is not ready: it is being deleted"],
  ],
  [
    "a node without a pod, which should have one",
    {
      pods: { value: [pod("one")] },
      refusals: {
        value: [
          { message: "old", lastTimestamp: "2026-01-01" },
          { message: "violates PodSecurity", lastTimestamp: "2026-01-02" },
        ],
      },
    },
    ["error: it has no pod: violates PodSecurity"],
  ],
  [
    "a node without a pod, by the chart's values",
    {
      ...rolledOut({ desiredNumberScheduled: 1, numberReady: 1, updatedNumberScheduled: 1 }),
      pods: { value: [pod("one")] },
    },
    ["warning: it is to have none: meshed pods that start there are not redirected"],
  ],
  [
    "pods of another DaemonSet",
    { pods: { value: [pod("one"), pod("two"), pod("three", {}, { ownerReferences: [] })] } },
    [],
  ],
  ["pods that may not be read", { pods: { problem: "Forbidden" } }, ["error: Forbidden"]],
  [
    "no chain and no Multus",
    underMultus,
    ["warning: the plugin is not chained (chained: false), and there is no webhook that has Multus call it"],
  ],
  ["no chain, under Multus", multus, []],
  [
    "no Multus itself",
    { ...multus, definitions: { value: undefined } },
    ["error: the API server knows no NetworkAttachmentDefinitions"],
  ],
  [
    "no certificate",
    { ...multus, webhook: { value: webhook(undefined) } },
    ["error: webhook a.b has no caBundle: the API server cannot call it"],
  ],
  [
    "no operator",
    { ...multus, operator: { value: operator(0) } },
    ["error: no replica of Deployment linkerd-multus is ready: pods are not created"],
  ],
];

test.each(cases)("%s", (_, given, expected) => {
  const findings = inspect(cluster(given));
  expect(said(findings)).toEqual(expected);
  for (const { problem, remedy, link } of findings) {
    expect(problem === undefined || (remedy !== undefined && leadsSomewhere(link))).toBe(true);
  }
});

describe("rights", () => {
  const rules = (name: string, deleteUnvalidated = false) =>
    requiredGrants(
      daemonSet({}, { repairController: { enabled: true, deleteUnvalidated }, podEvents: true }),
      NAMESPACE,
    ).find(({ kind, metadata }) => kind === "ClusterRole" && metadata.name === name)?.rules;

  test("are those of what runs in the pods", () => {
    expect(JSON.stringify(rules("linkerd-cni"))).toContain('"delete"');
    expect(JSON.stringify(rules("linkerd-cni"))).not.toContain("pods/eviction");
    expect(JSON.stringify(rules("linkerd-cni", true))).toContain("pods/eviction");
    expect(JSON.stringify(requiredGrants(daemonSet(), NAMESPACE))).not.toContain('"delete"');
    const shared = requiredGrants(daemonSet({}, { pluginToken: { dedicated: false } }), NAMESPACE);
    expect(shared.map(({ metadata }) => metadata.name)).not.toContain("linkerd-cni-plugin");
  });

  /** A role in place of the plugin's, and what is said. */
  test.each([
    [{ rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] }, []],
    [
      { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] },
      ["error: ClusterRole linkerd-cni-plugin does not allow to get namespaces, get services kubernetes"],
    ],
    [
      { rules: [{ apiGroups: [""], resources: ["*"], verbs: ["get"], resourceNames: ["kubernetes"] }] },
      ["error: ClusterRole linkerd-cni-plugin does not allow to get pods, get namespaces"],
    ],
  ])("%j", (role, expected) => {
    const { grants } = cluster();
    const changed = grants.map(({ wanted, found }) => {
      const isPlugins = wanted.kind === "ClusterRole" && wanted.metadata.name === "linkerd-cni-plugin";
      return { wanted, found: isPlugins ? { value: { ...wanted, ...role } } : found };
    });
    expect(said(inspect(cluster({ grants: changed })))).toEqual(expected);
  });

  test("bindings have to bind the right role to the right account", () => {
    const change = (binding: object) => {
      const { grants } = cluster();
      const changed = grants.map(({ wanted, found }) =>
        wanted.kind === "ClusterRoleBinding"
          ? { wanted, found: { value: { ...wanted, ...binding } } }
          : { wanted, found },
      );
      return said(inspect(cluster({ grants: changed })));
    };
    expect(change({ subjects: [{ kind: "ServiceAccount", name: "linkerd-cni", namespace: "old" }] })).toEqual([
      "error: ClusterRoleBinding linkerd-cni does not bind it to ServiceAccount linkerd-cni/linkerd-cni",
      "error: ClusterRoleBinding linkerd-cni-plugin does not bind it to ServiceAccount linkerd-cni/linkerd-cni-plugin",
    ]);
    expect(change({ roleRef: { kind: "ClusterRole", name: "view" } })).toHaveLength(2);
  });
});

test("the log to see is that of the container that is not ready", () => {
  const containerStatuses = [
    { name: "install-cni", ready: true },
    { name: "repair-controller", ready: false },
  ];
  const remedies = (status: CheckedPod["status"]) =>
    inspect(cluster(onTwo(status))).flatMap(({ remedy }) => (remedy?.includes("kubectl logs") ? [remedy] : []));
  const see = "see: kubectl logs -n linkerd-cni linkerd-cni-two -c";
  expect(remedies({ conditions: unready, containerStatuses })).toEqual([`${see} repair-controller`]);
  expect(remedies({ conditions: unready })).toEqual([`${see} install-cni`]);
});

describe("the report", () => {
  const findings = inspect(cluster(onTwo({ conditions: unready })));

  test("has its facts below each other, and colours only where they are wanted", () => {
    const plain = reportText(findings, pc.createColors(false));
    const coloured = reportText(findings, pc.createColors(true));
    expect(plain).not.toContain("\u001b");
    expect(coloured).toContain("\u001b[31m×\u001b[39m");
    expect(stripVTControlCharacters(coloured)).toBe(plain);
    expect(plain).toContain("linkerd-cni-nodes\n-----------------\n√ DaemonSet linkerd-cni is rolled out");
    expect(plain).toMatch(/\n {4}see https:\/\/\S+\/LinkerdCNINotReady\.md\n/);
    expect(plain.endsWith("Status check results are ×: 1 failed\n")).toBe(true);
  });
});
