import type { PodObject } from "../../../kubernetes/types";
import { failing, meshedPod, ownedBy, passed } from "../../support/meshed-pod";
import { repairOnVirtualClock } from "../../support/repair";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

interface Course {
  /** When a pod in a deleted one's place is broken. @default 1 s */
  readonly failsAfterMs?: number;
  /** When a pod of the owner comes that works. */
  readonly goodAt?: readonly number[];
}

/** Hours of one node's repairs of a pod that never works: when it is deleted and its owner suspended, in minutes. */
async function sixHours({ failsAfterMs = SECOND, goodAt = [] }: Course) {
  const deletions: number[] = [];
  const suspensions: number[] = [];
  const note = (list: number[]) => list.push(Math.floor(clock.now() / MINUTE));

  const podOf = (status: object) =>
    meshedPod("web-1", { metadata: ownedBy("web", "StatefulSet"), status }) as PodObject;
  const arrive = () => {
    const object = podOf({});
    controller.pods.apply({ type: "ADDED", object });
    clock.after(failsAfterMs, () =>
      controller.pods.apply({ type: "MODIFIED", object: { ...object, status: failing } }),
    );
  };
  const repair = repairOnVirtualClock({
    delete: async ({ uid }) => {
      note(deletions);
      controller.pods.apply({ type: "DELETED", object: { metadata: { uid } } });
      clock.after(20, arrive);
      return "deleted";
    },
    publish: async (_, { reason }) => void (reason === "LinkerdCNIRepairSuspended" && note(suspensions)),
  });
  const { clock, controller } = repair;

  for (const at of goodAt) clock.after(at, () => controller.pods.apply({ type: "ADDED", object: podOf(passed) }));
  clock.after(1, arrive);
  await repair.run(6 * HOUR);
  await repair.end();
  return { deletions, suspensions };
}

/** One round more after each suspension of 5, 10, 20, 40, then 60 minutes. */
const SUSPENSIONS = [0, 5, 15, 35, 75, 135, 195, 255, 315];
const [, ...TRIALS] = SUSPENSIONS;

test.each([
  ["alone", []],
  ["beside one that has worked all the time", [0]],
])("a pod that never works, %s, is deleted no more often than the suspensions allow", async (_, goodAt) => {
  expect(await sixHours({ goodAt })).toEqual({ deletions: [0, 0, 0, ...TRIALS], suspensions: SUSPENSIONS });
});

test("a pod that fails later than one comes back is deleted ever more rarely, too", async () => {
  const { deletions, suspensions } = await sixHours({ failsAfterMs: 6 * MINUTE, goodAt: [0] });
  expect(deletions).toEqual([6, 12, 18, 29, 45, 71, 117, 183, 249, 315]);
  expect(suspensions).toEqual([24, 35, 51, 77, 123, 189, 255, 321]);
});

test("rounds before a pod came that works do not count, and those after it do", async () => {
  const { deletions, suspensions } = await sixHours({ failsAfterMs: 10 * SECOND, goodAt: [25 * SECOND] });
  expect(deletions.slice(0, 7)).toEqual([0, 0, 0, 0, 0, 6, 16]);
  expect(suspensions.slice(0, 3)).toEqual([1, 6, 16]);
});

test("a new pod that works ends the suspension", async () => {
  const { deletions, suspensions } = await sixHours({ goodAt: [20 * MINUTE] });
  expect(deletions).toEqual([0, 0, 0, 5, 15, 20, 20, 20, 25, 35, 55, 95, 155, 215, 275, 335]);
  expect(suspensions).toEqual([0, 5, 15, 20, 25, 35, 55, 95, 155, 215, 275, 335]);
});
