import { RepairController } from "../../../controllers/repair/controller";
import { createMetrics } from "../../../controllers/repair/metrics";
import type { DeleteOutcome } from "../../../controllers/repair/pod-actions";
import type { TrackedPod } from "../../../controllers/repair/pod-store";
import type { PodObject } from "../../../kubernetes/types";
import { failing, meshedPod, ownedBy, passed } from "../../support/meshed-pod";
import type { PodLike } from "../../support/pods-api";
import { VirtualClock } from "../../support/virtual-clock";

const quiet = () => undefined;
const log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };

let clock: VirtualClock;
let controller: RepairController;
let outcome: (pod: TrackedPod) => DeleteOutcome;
let attempts: string[];
const at: Record<string, number[]> = {};
let stopping: AbortController;
let done: Promise<void> | undefined;

beforeEach(() => {
  [clock, attempts, stopping] = [new VirtualClock(), [], new AbortController()];
  outcome = () => "deleted";
  for (const name of Object.keys(at)) delete at[name];
  controller = new RepairController({
    settings: { rate: { perSecond: 1, burst: 1 }, deleteUnowned: false, waitForNri: false },
    actions: {
      delete: async (pod) => {
        attempts.push(pod.name);
        at[pod.name] = [...(at[pod.name] ?? []), clock.now()];
        return outcome(pod);
      },
      publish: async () => undefined,
    },
    installerReady: async () => true,
    injectorProblem: async () => undefined,
    metrics: createMetrics(),
    clock,
    log,
    signal: stopping.signal,
  });
  done = undefined;
});

/** Lets the controller work for so many milliseconds. */
async function run(ms: number): Promise<void> {
  done ??= controller.run();
  await clock.run(ms);
}

afterEach(async () => {
  stopping.abort();
  await done;
});

const add = (name: string, status: object, metadata: Partial<PodLike["metadata"]> = {}) => {
  const pod = meshedPod(name, { metadata: { ...ownedBy(name), ...metadata }, status });
  controller.pods.apply({ type: "ADDED", object: pod as PodObject });
  return controller.pods.get(pod.metadata.uid) as TrackedPod;
};

test("pods of the control plane come first", async () => {
  const labels = { "linkerd.io/control-plane-ns": "linkerd", "linkerd.io/control-plane-component": "destination" };
  add("first", failing);
  add("second", failing);
  add("control-plane", failing, { namespace: "linkerd", labels });
  await run(5_000);
  expect(attempts.slice(0, 2)).toContain("control-plane");
});

test("a failed deletion is retried with back-off, at least every minute", async () => {
  outcome = () => "failed";
  const pod = add("broken", failing);
  // Reports of the kubelet in the meantime are not a reason to try earlier.
  for (let second = 0; second < 600; second++) {
    clock.after(second * 1_000, () => controller.pods.apply({ type: "MODIFIED", object: objectOf(pod) }));
  }
  await run(600_000);
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
  clock.after(500, () => controller.pods.apply({ type: "MODIFIED", object: { ...objectOf(second), status: passed } }));
  await run(5_000);
  expect(attempts).toEqual(["first"]);
});
