import { stripVTControlCharacters } from "node:util";
import pc from "picocolors";
import { DROPIN_TYPE } from "../../cni/stanza";
import { leadsSomewhere } from "../links.testing";
import {
  cluster,
  configured,
  daemonSet,
  forbidden,
  multus,
  NAMESPACE,
  node,
  notReady,
  onTwo,
  operator,
  pod,
  READY,
  rolledOut,
  said,
  stanza,
  underMultus,
  unready,
  validated,
  wantsNothing,
  webhook,
  withImage,
} from "./cluster.testing";
import { inspect } from "./inspect";
import type { CheckedPod } from "./objects";
import { reportText } from "./report";
import { requiredGrants, type Snapshot } from "./snapshot";

/** A node at its limit of pods, without room for a second pod. */
const surgeWithoutRoom: Partial<Snapshot> = {
  ...rolledOut({ updatedNumberScheduled: 1 }),
  pods: {
    value: [
      pod("one"),
      pod("two"),
      {
        ...pod(
          "two",
          {
            conditions: [
              { type: "PodScheduled", status: "False", message: "0/2 nodes are available: 1 Too many pods" },
            ],
          },
          { name: "linkerd-cni-new" },
        ),
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["two"] }] }],
              },
            },
          },
        },
      },
    ],
  },
};

const running = (
  name: string,
  startTime: string,
  containers: readonly string[],
  spec: object = {},
  metadata: object = {},
): CheckedPod => ({
  metadata: { name, namespace: "shop", ...metadata },
  spec: { nodeName: "one", containers: containers.map((container) => ({ name: container })), ...spec },
  status: { startTime },
});
const on = (nodeName: string, waiting: CheckedPod): CheckedPod => ({ ...waiting, spec: { nodeName } });
/** What containerd passes on if the installer does not answer the plugin. */
const UNANSWERED =
  'plugin type="linkerd-cni" name="linkerd-cni" failed (add): cannot look up pod shop/a: the installer on this node (a pod of DaemonSet linkerd-cni/linkerd-cni) does not answer: no answer within 4999 ms; the kubelet tries again';
const injecting = (name: string, inject: string, labels: Readonly<Record<string, string>> = {}) => ({
  metadata: { name, labels, annotations: { "linkerd.io/inject": inject } },
});

const AFFINITY = {
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In" as const, values: ["mesh"] }] }],
  },
};

/** Problems, and the complete findings. */
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
    "a stanza that is not an object",
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
    // Kustomize does not change a namespace inside a text, so the installer fills in the namespace that it runs in.
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
    ["error: DaemonSet linkerd-cni/linkerd-cni is not there: the plugin is not installed"],
  ],
  [
    "nothing, as after an uninstall",
    {
      namespaceObject: { value: undefined },
      configMap: { value: undefined },
      daemonSet: { value: undefined },
      daemonSets: { value: [] },
      pods: { value: [] },
      grants: requiredGrants(daemonSet(), NAMESPACE).map((wanted) => ({ wanted, found: { value: undefined } })),
    },
    ["error: DaemonSet linkerd-cni/linkerd-cni is not there: the plugin is not installed"],
  ],
  [
    "a change that the controller has not processed",
    rolledOut({ observedGeneration: 0 }),
    ["error: its controller has not processed the last change"],
  ],
  ["old pods", rolledOut({ updatedNumberScheduled: 1 }), ["error: 1 of 2 pods are of an older version"]],
  [
    "old pods that are not replaced",
    rolledOut({ updatedNumberScheduled: 1 }, { updateStrategy: { type: "OnDelete" } }),
    ["error: 1 of 2 pods are of an older version, and are replaced only when they are deleted"],
  ],
  [
    "a container that does not start",
    onTwo({ containerStatuses: [{ name: "install-cni", state: { waiting: { reason: "CrashLoopBackOff" } } }] }),
    ["error: pod linkerd-cni-two is not ready: container install-cni: CrashLoopBackOff"],
  ],
  [
    "an installer with a reason in its log",
    {
      ...onTwo({ conditions: unready, containerStatuses: [{ name: "install-cni", state: { running: {} } }] }),
      warnings: new Map([["linkerd-cni-two", "linkerd-cni: error: no valid CNI configuration in /etc/cni/net.d"]]),
    },
    ["error: pod linkerd-cni-two is not ready: it says: no valid CNI configuration in /etc/cni/net.d"],
  ],
  [
    "an installer without a reason in its log",
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
      warnings: new Map([["linkerd-cni-two", "linkerd-cni: warn: another program changed 10-calico.conflist back"]]),
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
    ["warning: it should not have one: meshed pods that start there are not redirected"],
  ],
  [
    "pods of another DaemonSet",
    { pods: { value: [pod("one"), pod("two"), pod("three", {}, { ownerReferences: [] })] } },
    [],
  ],
  [
    "a roll-out that only needs time",
    rolledOut({ updatedNumberScheduled: 1, numberReady: 1 }),
    ["error: 1 of 2 pods are of an older version"],
  ],
  [
    "an image that cannot be pulled, as the only finding",
    {
      ...rolledOut({ numberReady: 1 }),
      ...onTwo({
        containerStatuses: [
          { name: "install-cni", state: { waiting: { reason: "ErrImagePull", message: "no such image" } } },
        ],
      }),
    },
    ["error: pod linkerd-cni-two is not ready: container install-cni: ErrImagePull: no such image"],
  ],
  [
    "a new pod that never gets ready beside the old one",
    {
      ...rolledOut({ updatedNumberScheduled: 1 }),
      pods: {
        value: [
          pod("one"),
          pod("two"),
          pod(
            "two",
            { containerStatuses: [{ name: "install-cni", state: { waiting: { reason: "ErrImagePull" } } }] },
            { name: "linkerd-cni-new" },
          ),
        ],
      },
    },
    ["error: pod linkerd-cni-new is not ready: container install-cni: ErrImagePull"],
  ],
  [
    "the same, with two nodes of which neither has the new version",
    {
      ...rolledOut({ updatedNumberScheduled: 0 }),
      pods: {
        value: [
          pod("one"),
          pod("two"),
          pod(
            "two",
            { containerStatuses: [{ name: "install-cni", state: { waiting: { reason: "ErrImagePull" } } }] },
            { name: "linkerd-cni-new" },
          ),
        ],
      },
    },
    [
      "error: pod linkerd-cni-new is not ready: container install-cni: ErrImagePull; the rollout waits for it before it goes on to 1 other node",
    ],
  ],
  [
    "a new pod for which the node of the old one has no room",
    surgeWithoutRoom,
    ["error: pod linkerd-cni-new is not ready: 0/2 nodes are available: 1 Too many pods"],
  ],
  [
    "a foreign image under another name",
    onTwo({
      containerStatuses: [
        {
          name: "install-cni",
          image: "mirror/cni:1",
          state: { waiting: { reason: "CrashLoopBackOff", message: "back-off" } },
          lastState: { terminated: { message: 'exec: "/opt/cni/bin/linkerd-cni": stat: no such file or directory' } },
        },
      ],
    }),
    [
      "error: pod linkerd-cni-two is not ready: container install-cni: image mirror/cni:1 is not this project's: it lacks the programs that the chart starts; it may be linkerd's own under another name",
    ],
  ],
  [
    "a virtual node, on which no pod starts",
    {
      ...onTwo({ conditions: unready }),
      nodes: {
        value: [node("one"), node("two", { metadata: { name: "two", labels: { type: "kwok" } } })],
      },
    },
    [
      "error: pod linkerd-cni-two is not ready: no pod of the installer starts on a virtual node (type=kwok), and a rollout waits for it",
    ],
  ],
  [
    "linkerd's image under another name",
    {
      ...onTwo({
        containerStatuses: [
          {
            name: "install-cni",
            image: "mirror/cni:1",
            state: { waiting: { reason: "CrashLoopBackOff", message: "back-off" } },
            lastState: { terminated: { reason: "Error", exitCode: 1 } },
          },
        ],
      }),
      warnings: new Map([["linkerd-cni-two", '    "msg": "required env variables [CNI_COMMAND,CNI_NETNS] missing"']]),
    },
    [
      "error: pod linkerd-cni-two is not ready: container install-cni: image mirror/cni:1 is not this project's: it lacks the programs that the chart starts; it may be linkerd's own under another name",
    ],
  ],
  [
    "linkerd's own image",
    { daemonSet: { value: withImage("cr.l5d.io/linkerd/cni-plugin:v1.6.7") } },
    [
      "error: DaemonSet linkerd-cni/linkerd-cni: cr.l5d.io/linkerd/cni-plugin:v1.6.7 is the image of linkerd's own chart, which cannot run here",
    ],
  ],
  [
    "a container that needs more memory",
    onTwo({
      containerStatuses: [
        {
          name: "install-cni",
          state: { waiting: { reason: "CrashLoopBackOff" } },
          lastState: { terminated: { reason: "OOMKilled" } },
        },
      ],
    }),
    ["error: pod linkerd-cni-two is not ready: container install-cni: OOMKilled: it needs more memory than its limit"],
  ],
  [
    "a priority class that is not there, while old pods run",
    {
      ...rolledOut({ updatedNumberScheduled: 0 }),
      refusals: {
        value: [{ message: "no PriorityClass with name mesh was found", lastTimestamp: "2026-01-02T00:00:00Z" }],
      },
    },
    ["error: no PriorityClass with name mesh was found"],
  ],
  [
    "an Event that is older than the pods",
    {
      ...rolledOut({ updatedNumberScheduled: 1 }),
      refusals: { value: [{ message: "violates PodSecurity", lastTimestamp: "2026-01-02T00:00:00Z" }] },
      pods: { value: [pod("one"), pod("two", undefined, { creationTimestamp: "2026-01-03T00:00:00Z" })] },
    },
    ["error: 1 of 2 pods are of an older version"],
  ],
  [
    "a DaemonSet that wants no node",
    { ...wantsNothing({ nodeAffinity: AFFINITY }), nodes: { value: [node("one")] } },
    [
      "error: DaemonSet linkerd-cni matches no node: of the only node none fits: one: nodeAffinity requires pool In mesh, and the node has no label pool",
    ],
  ],
  [
    "a node that is left out by its taint",
    {
      ...rolledOut({ desiredNumberScheduled: 1, numberReady: 1, updatedNumberScheduled: 1 }, { tolerations: [] }),
      pods: { value: [pod("one")] },
      nodes: {
        value: [node("one"), node("gpu", { spec: { taints: [{ key: "gpu", value: "a", effect: "NoSchedule" }] } })],
      },
    },
    [
      "warning: it should not have one, since tolerations do not cover the node's taint gpu=a:NoSchedule: meshed pods that start there are not redirected",
    ],
  ],
  [
    "a node without a network",
    {
      nodes: {
        value: [node("one"), node("two", notReady("container runtime network not ready: NetworkReady=false"))],
      },
    },
    ["error: node two is NotReady: container runtime network not ready: NetworkReady=false"],
  ],
  [
    "a node whose kubelet does not report",
    {
      ...onTwo({ conditions: unready }),
      nodes: {
        value: [node("one"), node("two", notReady("Kubelet stopped posting node status.", "Unknown"))],
      },
    },
    ["error: pod linkerd-cni-two is not ready: node two is NotReady: Kubelet stopped posting node status."],
  ],
  [
    "an old Event, for a user who may not read pods",
    { refusals: { value: [{ message: "violates PodSecurity" }] }, pods: forbidden("pods") },
    ["warning: not allowed to read pods: what these show is not checked"],
  ],
  [
    "pods that started before the chain",
    { pending: { value: [validated("a", 95), validated("b", 95), validated("c", 1)] } },
    ["error: shop/a and 1 other started before the chain: linkerd-network-validator ended with code 95"],
  ],
  [
    "meshed pods without a validator that are older than the installation",
    {
      daemonSet: {
        value: { ...daemonSet(), metadata: { ...daemonSet().metadata, creationTimestamp: "2026-01-02T00:00:00Z" } },
      },
      running: {
        value: [
          running("old", "2026-01-01T00:00:00Z", ["app", "linkerd-proxy"]),
          running("native", "2026-01-01T00:00:00Z", ["app"], { initContainers: [{ name: "linkerd-proxy" }] }),
          running("young", "2026-01-03T00:00:00Z", ["linkerd-proxy"]),
          running("validated", "2026-01-01T00:00:00Z", ["linkerd-proxy"], {
            initContainers: [{ name: "linkerd-network-validator" }],
          }),
          running("init", "2026-01-01T00:00:00Z", ["linkerd-proxy"], { initContainers: [{ name: "linkerd-init" }] }),
          running("host", "2026-01-01T00:00:00Z", ["linkerd-proxy"], { hostNetwork: true }),
          running("plain", "2026-01-01T00:00:00Z", ["app"]),
        ],
      },
    },
    [
      "warning: shop/old and 1 other started before the installation (2026-01-02T00:00:00Z) and without linkerd-network-validator: nothing shows whether they are redirected",
    ],
  ],
  [
    "pods without a proxy, although their namespace asks for one",
    {
      namespaces: {
        value: [
          injecting("shop", "enabled"),
          injecting("entry", "ingress"),
          injecting("off", "disabled"),
          { ...injecting("cni", "enabled", { "config.linkerd.io/admission-webhooks": "disabled" }) },
        ],
      },
      running: {
        value: [
          running("web", "2026-01-01T00:00:00Z", ["app"]),
          running("meshed", "2026-01-01T00:00:00Z", ["linkerd-proxy"], { initContainers: [{ name: "linkerd-init" }] }),
          running("host", "2026-01-01T00:00:00Z", ["app"], { hostNetwork: true }),
          running("tokenless", "2026-01-01T00:00:00Z", ["app"], { automountServiceAccountToken: false }),
          running("refuses", "2026-01-01T00:00:00Z", ["app"], {}, { annotations: { "linkerd.io/inject": "disabled" } }),
          running("gate", "2026-01-01T00:00:00Z", ["app"], {}, { namespace: "entry" }),
          running("a", "2026-01-01T00:00:00Z", ["app"], {}, { namespace: "off" }),
          running(
            "b",
            "2026-01-01T00:00:00Z",
            ["app"],
            {},
            {
              namespace: "off",
              annotations: { "linkerd.io/inject": "enabled" },
            },
          ),
          running("c", "2026-01-01T00:00:00Z", ["app"], {}, { namespace: "cni" }),
        ],
      },
    },
    [
      "warning: shop/web and 2 others have no proxy, although linkerd.io/inject of the pod or its namespace asks for one: created while linkerd's injector did not answer, or before the annotation",
    ],
  ],
  [
    "a runtime that looks elsewhere for plugins",
    {
      pending: { value: [validated("a", 0)] },
      sandboxFailures: {
        value: [
          {
            message:
              'Failed to create pod sandbox: plugin type="linkerd-cni" failed (add): failed to find plugin "linkerd-cni" in path [/opt/other/bin]',
            involvedObject: { uid: "a" },
          },
          {
            message: 'failed to find plugin "linkerd-cni" in path [/gone]',
            involvedObject: { uid: "of a deleted pod" },
          },
        ],
      },
    },
    [
      'error: shop/a cannot start: plugin type="linkerd-cni" failed (add): failed to find plugin "linkerd-cni" in path [/opt/other/bin]',
    ],
  ],
  [
    "an installer that does not answer look-ups: the pods that wait, by node",
    {
      pending: { value: ["a", "b", "c"].map((name) => on(name === "c" ? "two" : "one", validated(name, 0))) },
      sandboxFailures: {
        value: ["a", "b", "c"].map((uid) => ({ message: UNANSWERED, involvedObject: { uid } })),
      },
    },
    [
      `error: shop/a and 1 other cannot start: ${UNANSWERED.replace("this node", "node one")}`,
      `error: shop/c cannot start: ${UNANSWERED.replace("this node", "node two")}`,
    ],
  ],
  [
    "a ready installer that does not reach the API server",
    {
      warnings: new Map([
        [
          "linkerd-cni-two",
          "linkerd-cni: warn: this node cannot reach the API server: API server 10.96.0.1:443: no connection within 2000 ms",
        ],
      ]),
    },
    ["warning: node two cannot reach the API server: API server 10.96.0.1:443: no connection within 2000 ms"],
  ],
  [
    "parts that may not be read",
    { nodes: forbidden("nodes"), definitions: forbidden("customresourcedefinitions"), webhook: forbidden("webhooks") },
    ["warning: not allowed to read nodes, webhooks, customresourcedefinitions: what these show is not checked"],
  ],
  [
    "a user who may not read anything",
    {
      daemonSet: forbidden("daemonsets"),
      daemonSets: forbidden("daemonsets"),
      pods: forbidden("pods"),
      nodes: forbidden("nodes"),
    },
    ["error: not allowed to read daemonsets, pods, nodes: cannot check anything: (Forbidden)"],
  ],
  [
    "a wrong namespace",
    {
      namespace: "mesh",
      namespaceObject: { value: undefined },
      configMap: { value: undefined },
      daemonSet: { value: undefined },
      pods: { value: [] },
    },
    ["error: not in namespace mesh, but found in linkerd-cni"],
  ],
  ["pods that may not be read", { pods: { problem: "Forbidden" } }, ["error: Forbidden"]],
  [
    "no chain and no Multus",
    underMultus,
    [
      "warning: the plugin is not chained (chained: false), and there is neither a webhook that makes Multus call it, nor the NRI plugin",
    ],
  ],
  ["no chain, under Multus", multus, []],
  [
    "no Multus itself",
    { ...multus, definitions: { value: undefined } },
    ["error: the API server does not know NetworkAttachmentDefinitions"],
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
  const rules = (name: string) =>
    requiredGrants(daemonSet({}, { repairController: { enabled: true } }), NAMESPACE).find(
      ({ kind, metadata }) => kind === "ClusterRole" && metadata.name === name,
    )?.rules;

  test("are those that the pods need", () => {
    expect(JSON.stringify(rules("linkerd-cni"))).toContain('"delete"');
    expect(JSON.stringify(requiredGrants(daemonSet(), NAMESPACE))).not.toContain('"delete"');
  });

  /** A role instead of the installer's, and the finding. */
  test.each([
    [{ rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] }, []],
    [
      { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] },
      [
        "error: ClusterRole linkerd-cni does not allow to get namespaces, get services kubernetes, get nodes, get daemonsets.apps linkerd-cni",
      ],
    ],
    [
      { rules: [{ apiGroups: [""], resources: ["*"], verbs: ["get"], resourceNames: ["kubernetes"] }] },
      [
        "error: ClusterRole linkerd-cni does not allow to get pods, get namespaces, get nodes, get daemonsets.apps linkerd-cni",
      ],
    ],
  ])("%j", (role, expected) => {
    const { grants } = cluster();
    const changed = grants.map(({ wanted, found }) => {
      const isPlugins = wanted.kind === "ClusterRole" && wanted.metadata.name === "linkerd-cni";
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
    ]);
    expect(change({ roleRef: { kind: "ClusterRole", name: "view" } })).toHaveLength(1);
  });
});

const refusedInstaller = (why: string): Partial<Snapshot> => ({
  ...onTwo({ conditions: unready, containerStatuses: [{ name: "install-cni", state: { running: {} } }] }),
  warnings: new Map([["linkerd-cni-two", `linkerd-cni: error: ${why}`]]),
});
const refusedLookup = (why: string): Partial<Snapshot> => ({
  pending: { value: [on("one", validated("a", 0))] },
  sandboxFailures: {
    value: [{ message: `plugin type="linkerd-cni" failed (add): ${why}`, involvedObject: { uid: "a" } }],
  },
});

/** A finding and its remedy. */
test.each<readonly [string, Partial<Snapshot>, string]>([
  [
    "no room for a second pod",
    surgeWithoutRoom,
    "make room for a second pod on node two, or let the new pod have the old one's place: kubectl delete pod -n linkerd-cni linkerd-cni-two",
  ],
  [
    "Pod Security",
    {
      ...rolledOut({ updatedNumberScheduled: 1 }),
      pods: { value: [pod("one")] },
      refusals: { value: [{ message: 'forbidden: violates PodSecurity "restricted:latest"' }] },
    },
    "kubectl label namespace linkerd-cni pod-security.kubernetes.io/enforce=privileged --overwrite",
  ],
  [
    "no configuration",
    {
      ...onTwo({ conditions: unready, containerStatuses: [{ name: "install-cni", state: { running: {} } }] }),
      warnings: new Map([["linkerd-cni-two", "linkerd-cni: error: no valid CNI configuration in /etc/x yet: install"]]),
    },
    "set destCNINetDir to the directory from which the node's container runtime reads its configuration, which /etc/x is not",
  ],
  [
    "a directory without the other plugins",
    {
      ...onTwo({ conditions: unready, containerStatuses: [{ name: "install-cni", state: { running: {} } }] }),
      warnings: new Map([
        [
          "linkerd-cni-two",
          "linkerd-cni: error: /host/x lacks bridge, which the chain calls: set destCNIBinDir to the",
        ],
      ]),
    },
    "set multipleCNIBinDirs=true if the node's container runtime searches several directories for plugins, destCNIBinDir (/opt/cni/bin) among them",
  ],
  [
    "a broken file that comes first",
    {
      ...onTwo({ conditions: unready, containerStatuses: [{ name: "install-cni", state: { running: {} } }] }),
      warnings: new Map([
        [
          "linkerd-cni-two",
          "linkerd-cni: error: /host/etc/cni/net.d/05-a.conflist is not valid JSON: it comes first; containerd uses",
        ],
      ]),
    },
    "correct /etc/cni/net.d/05-a.conflist on the node, or move it out of the directory",
  ],
  [
    "another directory",
    {
      pending: { value: [validated("a", 0)] },
      sandboxFailures: {
        value: [
          { message: 'failed to find plugin "linkerd-cni" in path [/opt/other/bin]', involvedObject: { uid: "a" } },
        ],
      },
    },
    "destCNIBinDir is /opt/cni/bin, where the container runtime does not look: uninstall, and install again with destCNIBinDir=/opt/other/bin",
  ],
  [
    "another directory, by a drop-in",
    {
      pending: { value: [validated("a", 0)] },
      sandboxFailures: {
        value: [
          {
            message: `plugin type="${DROPIN_TYPE}" failed (add): failed to find plugin "${DROPIN_TYPE}" in path [/opt/other/bin]`,
            involvedObject: { uid: "a" },
          },
        ],
      },
    },
    "uninstall, and install again with destCNIBinDir=/opt/other/bin",
  ],
  [
    "an installer that does not reach the API server",
    refusedLookup("cannot look up pod shop/a: API server 10.96.0.1:443: connect ECONNREFUSED"),
    "let pods of node one reach that address",
  ],
  [
    "a token that is refused",
    refusedInstaller("the API server does not accept this pod's token (401)"),
    "if it stays, delete the pod, so that the kubelet gives the next one a new token",
  ],
  [
    "a right that is missing",
    refusedInstaller("this pod's account may not get pods (403)"),
    "a ClusterRole or its binding is missing or changed: apply the chart again",
  ],
  [
    "a look-up that is not allowed",
    refusedLookup("the API server answered 403 when asked for pod shop/a"),
    "a ClusterRole or its binding is missing or changed: apply the chart again",
  ],
  [
    "an installer that does not answer look-ups",
    {
      pending: { value: [on("one", validated("a", 0))] },
      sandboxFailures: { value: [{ message: UNANSWERED, involvedObject: { uid: "a" } }] },
    },
    "check that the linkerd-cni pod on node one is running and ready: it looks pods up for the plugin",
  ],
  [
    "a look-up with a token that is refused",
    refusedLookup("the API server answered 401: the token has expired"),
    "check that the linkerd-cni pod on node one is running and ready: it looks pods up for the plugin",
  ],
  ["another namespace", { namespace: "mesh", daemonSet: { value: undefined } }, "use --cni-namespace linkerd-cni"],
  [
    "95, with the repair controller",
    { ...rolledOut({}, { repairController: { enabled: true } }), pending: { value: [validated("a", 95)] } },
    "the repair controller deletes it in turn",
  ],
  [
    "a foreign DaemonSet beside a healthy one of ours",
    {
      namespace: "old",
      daemonSet: { value: { metadata: { name: "linkerd-cni", namespace: "old" } } },
      daemonSets: { value: [daemonSet(), { metadata: { name: "linkerd-cni", namespace: "old" } }] },
    },
    "keep that one, and uninstall old/linkerd-cni, which is of another chart",
  ],
])("the remedy for %s", (_, given, remedy) => {
  const remedies = inspect(cluster(given)).flatMap((finding) => finding.remedy ?? []);
  expect(remedies.join("\n")).toContain(remedy);
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

  test("has facts, and colours only if wanted", () => {
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

test("how pods are chained is reported by node", () => {
  const chainings = new Map([
    ["linkerd-cni-one", "dropin: containerd://2.2.9 reads drop-ins"],
    ["linkerd-cni-two", "edit: containerd://1.6.20 does not read drop-ins (containerd 2.1 and CRI-O 1.34 do)"],
  ]);
  const told = inspect(cluster({ chainings })).flatMap(({ what, detail }) =>
    what.startsWith("pods are chained") ? [`${what}; ${detail}`] : [],
  );
  expect(told).toEqual([
    "pods are chained by a drop-in beside the node's CNI configuration; one: containerd://2.2.9 reads drop-ins",
    "pods are chained by an edit of the node's CNI configuration; two: containerd://1.6.20 does not read drop-ins (containerd 2.1 and CRI-O 1.34 do)",
  ]);
});
