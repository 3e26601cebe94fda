import type { LinkerdCniProps } from "../../constructs";
import { leadsSomewhere } from "../links.testing";
import { cluster, daemonSet, NAMESPACE, pod, said, validated } from "./cluster.testing";
import { inspect } from "./inspect";
import type { CheckedPod, DaemonSet } from "./objects";
import { requiredGrants, type Snapshot } from "./snapshot";

/** The NRI plugin's DaemonSet, and its pods on both nodes. */
const nriSet = (status: DaemonSet["status"] = {}, props: LinkerdCniProps = {}): DaemonSet => {
  const made = daemonSet(status, { nri: { enabled: true }, ...props }, "linkerd-cni-nri");
  return { ...made, metadata: { ...made.metadata, uid: "nri" } };
};
const nriPod = (on: string, status?: CheckedPod["status"]) =>
  pod(on, status, {
    name: `linkerd-cni-nri-${on}`,
    labels: { "k8s-app": "linkerd-cni-nri" },
    ownerReferences: [{ uid: "nri" }],
  });
/** Beside the installer, which has a pod on both nodes. */
const withNri = (
  pods: readonly CheckedPod[],
  { chained = true, status = {} }: { chained?: boolean; status?: DaemonSet["status"] } = {},
) => ({
  daemonSet: { value: daemonSet({}, { chained, nri: { enabled: true } }) },
  nri: { value: nriSet(status, { chained }) },
  pods: { value: [pod("one"), pod("two"), ...pods] },
});
const unconnected = { conditions: [{ type: "Ready", status: "False", message: "unready" }] };
const noSocket = { chained: false, status: { numberReady: 1 } };
const NO_SOCKET = "there is no socket /run/nri/nri.sock: containerd 2.0 and later and CRI-O 1.30 and later make it";
const warnings = new Map([["linkerd-cni-nri-two", `linkerd-cni-nri: warn: ${NO_SOCKET}`]]);
const broken = (node: string) => ({ ...validated("web", 95), spec: { nodeName: node } });

const cases: readonly (readonly [string, Partial<Snapshot>, readonly string[]])[] = [
  ["the NRI plugin beside the chain", withNri([nriPod("one"), nriPod("two")]), []],
  ["the NRI plugin without a chain", withNri([nriPod("one"), nriPod("two")], { chained: false }), []],
  [
    "a runtime without NRI, if nothing else redirects",
    { ...withNri([nriPod("one"), nriPod("two", unconnected)], noSocket), warnings },
    [`error: node two: pod linkerd-cni-nri-two is not ready: it says: ${NO_SOCKET}`],
  ],
  [
    "a runtime without NRI, beside the chain",
    { ...withNri([nriPod("one"), nriPod("two", unconnected)], { ...noSocket, chained: true }), warnings },
    [`warning: node two: pod linkerd-cni-nri-two is not ready: it says: ${NO_SOCKET}`],
  ],
  [
    "a pod of the NRI plugin with an unknown problem",
    withNri([nriPod("one"), nriPod("two", unconnected)], noSocket),
    ["error: node two: pod linkerd-cni-nri-two is not ready: unready"],
  ],
  [
    "a roll-out of the NRI plugin",
    withNri([nriPod("one"), nriPod("two"), nriPod("two", unconnected)], { status: { observedGeneration: 0 } }),
    ["warning: its controller has not processed the last change"],
  ],
  [
    "pods of the NRI plugin that are refused",
    {
      ...withNri([nriPod("one")], { chained: false, status: { numberReady: 1 } }),
      nriRefusals: { value: [{ message: "violates PodSecurity", lastTimestamp: "2026-01-01T00:00:00Z" }] },
    },
    ["error: violates PodSecurity"],
  ],
  [
    "an NRI plugin that was removed by hand",
    { ...withNri([]), nri: { value: undefined } },
    ["error: DaemonSet linkerd-cni/linkerd-cni-nri is not there, and the installer expects it (nri.enabled)"],
  ],
  [
    "a validator that has not run since the NRI plugin repaired its pod",
    { ...withNri([nriPod("one"), nriPod("two")]), pending: { value: [broken("two")] } },
    [
      "warning: shop/web started without rules, which the NRI plugin sets in place: linkerd-network-validator has yet to run again",
    ],
  ],
  [
    "a validator on a node where the NRI plugin is not ready",
    {
      ...withNri([nriPod("one"), nriPod("two", unconnected)], { status: { numberReady: 1 } }),
      warnings,
      pending: { value: [broken("two")] },
    },
    [
      `warning: node two: pod linkerd-cni-nri-two is not ready: it says: ${NO_SOCKET}`,
      "error: shop/web started before the chain: linkerd-network-validator ended with code 95",
    ],
  ],
];

/** The permissions that the DaemonSets need and have. */
const grantsOf = ({ daemonSet: set, nri }: Partial<Snapshot>): Pick<Snapshot, "grants"> => {
  const valueIn = (read: Snapshot["nri"] | undefined) =>
    read !== undefined && "value" in read ? read.value : undefined;
  const wanted = requiredGrants(valueIn(set) ?? daemonSet(), NAMESPACE, valueIn(nri));
  return { grants: wanted.map((grant) => ({ wanted: grant, found: { value: grant } })) };
};

test.each(cases)("%s", (_, given, expected) => {
  const findings = inspect(cluster({ ...given, ...grantsOf(given) }));
  expect(said(findings)).toEqual(expected);
  for (const { problem, remedy, link } of findings) {
    expect(problem === undefined || (remedy !== undefined && leadsSomewhere(link))).toBe(true);
  }
});

test("the remedy for a runtime without NRI", () => {
  const findings = inspect(cluster({ ...withNri([nriPod("two", unconnected)], noSocket), warnings }));
  expect(findings.find(({ problem = "" }) => problem.includes("no socket"))).toMatchObject({
    remedy:
      "turn NRI on in the configuration of the node's container runtime, which must be containerd 2.0, CRI-O 1.30 or later; if its socket is not in /run/nri, set nri.socketDir",
    link: expect.stringMatching(/docs\/nri\.md#requirements$/),
  });
});

test("the mode is reported", () => {
  const modeOf = (chained: boolean) =>
    inspect(cluster(withNri([nriPod("one"), nriPod("two")], { chained })))
      .filter(({ category }) => category === "linkerd-cni-nri")
      .map(({ what, detail }) => [what, detail]);
  const rolledOut = ["DaemonSet linkerd-cni-nri is ready", "2 desired, 2 ready"];
  expect(modeOf(true)).toEqual([
    rolledOut,
    ["pods are redirected by the chain, and by the NRI plugin where it did not", undefined],
  ]);
  expect(modeOf(false)).toEqual([
    rolledOut,
    ["pods are redirected by the NRI plugin, without a chain (chained: false)", undefined],
  ]);
});
