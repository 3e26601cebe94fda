import type { Taint } from "../kubernetes/types";
import { withoutTaint } from "./taint";

const KEY = "linkerd.io/cni-not-ready";
const other: Taint = { key: "gpu", value: "yes", effect: "NoSchedule" };
const ours: Taint = { key: KEY, effect: "NoSchedule" };
const stricter: Taint = { key: KEY, effect: "NoExecute" };

test.each([
  ["no taint", [], []],
  ["others only", [other], []],
  [
    "one among others",
    [other, ours, other],
    [
      { op: "test", path: "/spec/taints/1", value: ours },
      { op: "remove", path: "/spec/taints/1" },
    ],
  ],
  [
    "several effects, the last first",
    [stricter, other, ours],
    [
      { op: "test", path: "/spec/taints/2", value: ours },
      { op: "remove", path: "/spec/taints/2" },
      { op: "test", path: "/spec/taints/0", value: stricter },
      { op: "remove", path: "/spec/taints/0" },
    ],
  ],
])("the patch for a node with %s", (_, taints, patch) => {
  expect(withoutTaint(taints, KEY)).toEqual(patch);
});
