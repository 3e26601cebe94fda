import { type PlacementSpec, whyNotPlaced } from "./placement";
import type { NodeObject } from "./types";

const BY_LABELS = /^node(Selector|Affinity) requires /;

function expectReason(found: string | undefined, why: RegExp | string | undefined): void {
  if (why === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(why);
}
const node: NodeObject = {
  metadata: { name: "node-1", labels: { "kubernetes.io/os": "linux", pool: "mesh", cores: "8" } },
  spec: {},
};
const tainted = (...taints: NonNullable<NonNullable<NodeObject["spec"]>["taints"]>): NodeObject => ({
  ...node,
  spec: { taints },
});
type Terms = readonly { readonly matchExpressions?: readonly object[]; readonly matchFields?: readonly object[] }[];
const affinity = (nodeSelectorTerms: Terms): PlacementSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const expression = (key: string, operator: string, ...values: readonly string[]): PlacementSpec =>
  affinity([{ matchExpressions: [{ key, operator, values }] }]);

test.each<readonly [string, PlacementSpec, RegExp | string | undefined]>([
  ["nothing said", {}, undefined],
  ["a nodeSelector", { nodeSelector: { "kubernetes.io/os": "linux", pool: "mesh" } }, undefined],
  [
    "another nodeSelector",
    { nodeSelector: { pool: "batch" } },
    /^nodeSelector requires pool=batch, and the node has label pool=mesh$/,
  ],
  ["In", expression("pool", "In", "mesh", "batch"), undefined],
  ["In, of others", expression("pool", "In", "batch"), BY_LABELS],
  [
    "In, without the label",
    expression("zone", "In", "a"),
    /^nodeAffinity requires zone In a, and the node has no label zone$/,
  ],
  ["NotIn", expression("pool", "NotIn", "mesh"), BY_LABELS],
  ["NotIn, without the label", expression("zone", "NotIn", "a"), undefined],
  ["Exists", expression("pool", "Exists"), undefined],
  ["Exists, without the label", expression("zone", "Exists"), BY_LABELS],
  ["DoesNotExist", expression("pool", "DoesNotExist"), BY_LABELS],
  ["Gt", expression("cores", "Gt", "4"), undefined],
  ["Gt, as much", expression("cores", "Gt", "8"), BY_LABELS],
  ["Lt", expression("cores", "Lt", "16"), undefined],
  ["Gt of a value that is not a number", expression("pool", "Gt", "4"), BY_LABELS],
  ["Gt than a value that is not a number", expression("cores", "Gt", "many"), undefined],
  ["an operator that is not known", expression("pool", "Like", "batch"), undefined],
  [
    "one of two terms",
    affinity([
      { matchExpressions: [{ key: "zone", operator: "Exists" }] },
      { matchFields: [] },
      {
        matchFields: [{ key: "metadata.name", operator: "In", values: ["node-1"] }],
      },
    ]),
    undefined,
  ],
  ["an empty term, which matches nothing", affinity([{}]), BY_LABELS],
  [
    "all of a term",
    affinity([
      {
        matchExpressions: [
          { key: "pool", operator: "Exists" },
          { key: "zone", operator: "Exists" },
        ],
      },
    ]),
    BY_LABELS,
  ],
  [
    "another node's name",
    affinity([{ matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["node-1"] }] }]),
    BY_LABELS,
  ],
  [
    "an unknown field",
    affinity([{ matchFields: [{ key: "metadata.uid", operator: "In", values: ["x"] }] }]),
    undefined,
  ],
  [
    "no terms, which the API server refuses",
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } } },
    undefined,
  ],
  ["only a preference", { affinity: { nodeAffinity: {} } }, undefined],
])("whether pods are wanted by labels: %s", (_, spec, why) => expectReason(whyNotPlaced(spec, node), why));

const gpu = { key: "gpu", value: "yes", effect: "NoSchedule" };
const BY_TAINT = "tolerations do not cover the node's taint gpu=yes:NoSchedule";

test.each<readonly [string, PlacementSpec["tolerations"], NodeObject, string | undefined]>([
  ["every taint", [{ operator: "Exists" }], tainted(gpu, { key: "x", effect: "NoExecute" }), undefined],
  ["none", undefined, tainted(gpu), BY_TAINT],
  ["none, of a preference", [], tainted({ key: "gpu", effect: "PreferNoSchedule" }), undefined],
  ["the key", [{ key: "gpu", operator: "Exists" }], tainted(gpu), undefined],
  ["key and value", [{ key: "gpu", value: "yes" }], tainted(gpu), undefined],
  ["another value", [{ key: "gpu", operator: "Equal", value: "no" }], tainted(gpu), BY_TAINT],
  ["another effect", [{ key: "gpu", operator: "Exists", effect: "NoExecute" }], tainted(gpu), BY_TAINT],
  ["by an unknown operator", [{ key: "gpu", operator: "Gt", value: "3" }], tainted(gpu), undefined],
  [
    "one of two",
    [{ key: "gpu", operator: "Exists" }],
    tainted(gpu, { key: "x", effect: "NoExecute" }),
    "tolerations do not cover the node's taint x:NoExecute",
  ],
  [
    "none of a node in trouble, which passes",
    [],
    tainted(
      { key: "node.kubernetes.io/unreachable", effect: "NoExecute" },
      { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" },
      { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" },
    ),
    undefined,
  ],
])("whether pods are wanted if they tolerate %s", (_, tolerations, where, why) => {
  expectReason(whyNotPlaced(tolerations === undefined ? {} : { tolerations }, where), why);
});
