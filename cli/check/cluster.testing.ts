import type { LinkerdCniProps } from "../../constructs";
import type { ConfigMapObject } from "../configuration";
import { installed } from "../resources";
import type { Finding } from "./finding";
import type { CheckedPod, DaemonSet, Deployment, NodeObject, WebhookConfiguration } from "./objects";
import { requiredGrants, type Snapshot } from "./snapshot";

export const NAMESPACE = "linkerd-cni";
const uid = "1";
export const READY = [{ type: "Ready", status: "True" }];

export const node = (name: string, given: Partial<NodeObject> = {}): NodeObject => ({
  metadata: { name, labels: { "kubernetes.io/os": "linux" } },
  ...given,
});
export const notReady = (message: string, status = "False") => ({
  status: { conditions: [{ type: "Ready", status, message }] },
});
/** A meshed pod whose validator ended with a code; 0 if it has not run. */
export const validated = (name: string, exitCode: number): CheckedPod => ({
  metadata: { name, namespace: "shop", uid: name },
  status: {
    initContainerStatuses: [
      {
        name: "linkerd-network-validator",
        state: { waiting: { reason: "CrashLoopBackOff" } },
        ...(exitCode === 0 ? {} : { lastState: { terminated: { exitCode } } }),
      },
    ],
  },
});
/** A pod that cannot be scheduled. */
export const waitingFor = (message: string): CheckedPod => ({
  metadata: { name: "web", namespace: "shop", uid: "web" },
  status: { conditions: [{ type: "PodScheduled", status: "False", message: `0/2 nodes are available: ${message}` }] },
});
export const forbidden = (kind: string) => ({ problem: "(Forbidden)", forbidden: kind });
export const pod = (
  on: string,
  status: CheckedPod["status"] = { conditions: READY },
  metadata: object = {},
): CheckedPod => ({
  metadata: { name: `linkerd-cni-${on}`, ownerReferences: [{ name: "linkerd-cni", uid }], ...metadata },
  spec: { nodeName: on },
  ...(status === undefined ? {} : { status }),
});

const manifest = <T>(kind: string, props: LinkerdCniProps = {}, name?: string) =>
  installed(props, NAMESPACE).find(
    (each) => each.kind === kind && (name === undefined || each.metadata.name === name),
  ) as unknown as T;

export function daemonSet(
  status: DaemonSet["status"] = {},
  props: LinkerdCniProps = {},
  name = "linkerd-cni",
): DaemonSet {
  const numbers = { desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 2 };
  const made = manifest<DaemonSet>("DaemonSet", props, name);
  return {
    ...made,
    metadata: { ...made.metadata, uid, generation: 1 },
    status: { observedGeneration: 1, ...numbers, ...status },
  };
}

/** A healthy cluster, except for the given parts. */
export function cluster(given: Partial<Snapshot> = {}): Snapshot {
  const set = daemonSet();
  return {
    namespace: NAMESPACE,
    namespaceObject: { value: { metadata: { name: NAMESPACE } } },
    configMap: { value: manifest<ConfigMapObject>("ConfigMap") },
    daemonSet: { value: set },
    daemonSets: { value: [set] },
    nri: { value: undefined },
    pods: { value: [pod("one"), pod("two")] },
    warnings: new Map(),
    chainings: new Map(),
    nodes: {
      value: [node("one"), node("two"), { metadata: { name: "w", labels: { "kubernetes.io/os": "windows" } } }],
    },
    refusals: { value: [] },
    nriRefusals: { value: [] },
    pending: { value: [] },
    running: { value: [] },
    namespaces: { value: [] },
    sandboxFailures: { value: [] },
    grants: requiredGrants(set, NAMESPACE).map((wanted) => ({ wanted, found: { value: wanted } })),
    webhook: { value: undefined },
    operator: { value: undefined },
    definitions: { value: undefined },
    ...given,
  };
}

export const said = (findings: readonly Finding[]) =>
  findings.flatMap(({ result, problem }) => (problem === undefined ? [] : [`${result}: ${problem}`]));

export const stanza = (text: string) => ({
  value: { ...manifest<ConfigMapObject>("ConfigMap"), data: { cni_network_config: text } },
});
export const configured = (change: (stanza: { linkerd: object; [key: string]: unknown }) => object) =>
  stanza(JSON.stringify(change(JSON.parse(manifest<ConfigMapObject>("ConfigMap").data?.["cni_network_config"] ?? ""))));
export const rolledOut = (status: DaemonSet["status"], props?: LinkerdCniProps) => ({
  daemonSet: { value: daemonSet(status, props) },
});
export const withImage = (image: string): DaemonSet => {
  const made = JSON.stringify(daemonSet());
  return JSON.parse(made.replace(/"image":"[^"]+"/g, `"image":"${image}"`)) as DaemonSet;
};
export const wantsNothing = (props: LinkerdCniProps) => ({
  daemonSet: { value: daemonSet({ desiredNumberScheduled: 0, updatedNumberScheduled: 0, numberReady: 0 }, props) },
  pods: { value: [] },
});
export const onTwo = (status: CheckedPod["status"], metadata?: object) => ({
  pods: { value: [pod("one"), pod("two", status, metadata)] },
});
export const unready = [{ type: "Ready", status: "False", message: "containers with unready status: [install-cni]" }];
export const webhook = (caBundle: string | undefined): WebhookConfiguration => ({
  metadata: { name: "linkerd-multus" },
  webhooks: [{ name: "a.b", failurePolicy: "Fail", clientConfig: caBundle === undefined ? {} : { caBundle } }],
});
export const operator = (readyReplicas: number): Deployment => ({
  metadata: { name: "linkerd-multus", namespace: "mesh" },
  spec: { replicas: 2 },
  status: { readyReplicas },
});
export const underMultus = { daemonSet: { value: daemonSet({}, { chained: false }) } };
export const multus = {
  ...underMultus,
  webhook: { value: webhook("QQ==") },
  operator: { value: operator(2) },
  definitions: { value: { metadata: {} } },
};
