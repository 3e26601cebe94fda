import type { DeleteOutcome } from "../../../controllers/repair/pod-actions";
import type { TrackedPod } from "../../../controllers/repair/pod-store";
import type { PodObject } from "../../../kubernetes/types";
import { failing, meshedPod, ownedBy, passed } from "../../support/meshed-pod";
import type { PodLike } from "../../support/pods-api";
import { repairOnVirtualClock } from "../../support/repair";

let repair: ReturnType<typeof repairOnVirtualClock>;
let outcome: DeleteOutcome;
let attempts: string[];
const at: Record<string, number[]> = {};

beforeEach(() => {
  [attempts, outcome] = [[], "deleted"];
  for (const name of Object.keys(at)) delete at[name];
  const attempt = async ({ name }: TrackedPod) => {
    attempts.push(name);
    at[name] = [...(at[name] ?? []), repair.clock.now()];
    return outcome;
  };
  repair = repairOnVirtualClock({ delete: attempt }, { rate: { perSecond: 1, burst: 1 } });
});

afterEach(() => repair.end());

const add = (name: string, status: object, metadata: Partial<PodLike["metadata"]> = {}) => {
  const pod = meshedPod(name, { metadata: { ...ownedBy(name), ...metadata }, status });
  repair.controller.pods.apply({ type: "ADDED", object: pod as PodObject });
  return repair.controller.pods.get(pod.metadata.uid) as TrackedPod;
};

test("pods of the control plane come first", async () => {
  const labels = { "linkerd.io/control-plane-ns": "linkerd", "linkerd.io/control-plane-component": "destination" };
  add("first", failing);
  add("second", failing);
  add("control-plane", failing, { namespace: "linkerd", labels });
  await repair.run(5_000);
  expect(attempts.slice(0, 2)).toContain("control-plane");
});

test("a failed deletion is retried with back-off, at least every minute", async () => {
  outcome = "failed";
  const pod = add("broken", failing);
  // Reports of the kubelet in the meantime are not a reason to try earlier.
  for (let second = 0; second < 600; second++) {
    repair.clock.after(second * 1_000, () => repair.controller.pods.apply({ type: "MODIFIED", object: objectOf(pod) }));
  }
  await repair.run(600_000);
  const pauses = (at["broken"] ?? []).map((time, index, all) => time - (all[index - 1] ?? 0)).slice(1);
  // Without jitter half of each pause is left.
  expect(pauses.slice(0, 7)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

const objectOf = ({ uid, name }: TrackedPod) => ({
  ...(meshedPod(name, { status: failing }) as PodObject),
  metadata: { ...ownedBy(name), name, namespace: "shop", uid },
});

test("a pod that works before its turn is not deleted", async () => {
  add("first", failing);
  const second = add("second", failing);
  repair.clock.after(500, () =>
    repair.controller.pods.apply({ type: "MODIFIED", object: { ...objectOf(second), status: passed } }),
  );
  await repair.run(5_000);
  expect(attempts).toEqual(["first"]);
});
