import { parseStanza } from "../../../cni/parse-stanza";
import { PLUGIN_TYPE } from "../../../cni/stanza";
import { Auditor } from "../../../controllers/repair/audit";
import { PodStore } from "../../../controllers/repair/pod-store";
import { KubernetesClient } from "../../../kubernetes/client";
import type { PodObject } from "../../../kubernetes/types";
import { meshedPod, ownedBy, running } from "../../support/meshed-pod";
import { noLog, repairOnVirtualClock } from "../../support/repair";
import { VirtualClock } from "../../support/virtual-clock";

const SECOND = 1_000;
const HOUR = 3_600_000;
const NEVER = Number.POSITIVE_INFINITY;

interface Course {
  /** When the NRI plugin sets the pod's rules, in seconds. @default never */
  readonly repairedAt?: number;
  /** When the validator runs for the first time, and how long the kubelet waits after that, in seconds. */
  readonly firstRun?: number;
  readonly backoff?: number;
  readonly waitForNri?: boolean;
}

/** The validator gives up after so many seconds. */
const RUN = 10;
const LONGEST = 300;
const at = (seconds: number) => new Date(seconds * SECOND).toISOString();

/** How a kubelet runs the validator of a pod again and again. @returns when the pod was deleted, in seconds */
async function course({ repairedAt = NEVER, firstRun = 0, backoff = 10, waitForNri = true }: Course) {
  const deletions: number[] = [];
  const pod = meshedPod("web-1", { metadata: ownedBy("web") }) as PodObject;
  const note = async () => {
    deletions.push(Math.floor(clock.now() / SECOND));
    return "deleted" as const;
  };
  const repair = repairOnVirtualClock({ delete: note }, { waitForNri });
  const { clock, controller } = repair;
  let last: object = {};
  const tell = (state: object) => {
    const validator = { name: "linkerd-network-validator", state, ...last };
    controller.pods.apply({
      type: "MODIFIED",
      object: { ...pod, status: { phase: "Pending", initContainerStatuses: [validator] } },
    });
  };
  const run = (pause: number) => {
    const started = clock.now() / SECOND;
    tell({ running: {} });
    const passes = started >= repairedAt;
    clock.after((passes ? 1 : RUN) * SECOND, () => {
      const terminated = { exitCode: passes ? 0 : 95, finishedAt: at(clock.now() / SECOND) };
      tell({ terminated });
      if (passes) return;
      last = { lastState: { terminated } };
      tell({ waiting: { reason: "CrashLoopBackOff" } });
      clock.after(pause * SECOND, () => run(Math.min(pause * 2, LONGEST)));
    });
  };
  clock.after(firstRun * SECOND + 1, () => run(backoff));
  await repair.run(HOUR);
  await repair.end();
  return deletions;
}

test("without the NRI plugin, a pod is deleted as soon as its validator has failed", async () => {
  expect(await course({ waitForNri: false })).toEqual([10]);
});

test.each([
  ["before the second run", 12],
  ["before the third", 45],
  ["just before the run that would have been the last", 99],
])("a pod that the NRI plugin repairs %s is not deleted", async (_, repairedAt) => {
  expect(await course({ repairedAt })).toEqual([]);
});

test("a pod that waits long for its next run is not deleted until then", async () => {
  expect(await course({ backoff: LONGEST, repairedAt: 11 })).toEqual([]);
  expect(await course({ backoff: LONGEST })).toEqual([10 + LONGEST + RUN]);
});

test("a pod without repair is deleted once a run has failed a minute after the first", async () => {
  // Runs end after 10, 30, 60 and 110 s.
  expect(await course({})).toEqual([110]);
});

const ignore = () => undefined;

/** When pods without a validator are reported whose connections are redirected from a time on, in seconds. */
async function audits(waitForNri: boolean, repairedAt: number) {
  const clock = new VirtualClock();
  const stopping = new AbortController();
  const pods = new PodStore({ now: () => clock.now(), changed: ignore, ended: ignore, overflow: ignore });
  const object = meshedPod("bare", { status: running, spec: { initContainers: [] } }) as PodObject;
  pods.apply({ type: "ADDED", object });
  const found: number[] = [];
  const auditor = new Auditor({
    pods,
    client: new KubernetesClient(async () => ({ status: 200, body: '{"metadata":{}}' })),
    stanza: parseStanza({ type: PLUGIN_TYPE, linkerd: { "incoming-proxy-port": 4143 } }, PLUGIN_TYPE),
    probe: async (_, port) => (port === 4143 || clock.now() >= repairedAt * SECOND ? "open" : "refused"),
    waitForNri,
    found: async () => void found.push(clock.now() / SECOND),
    clock,
    log: noLog,
    signal: stopping.signal,
  });
  const done = auditor.run();
  await clock.run(HOUR);
  stopping.abort();
  await done;
  return { found, absent: pods.count(({ redirect }) => redirect === "absent") };
}

test("a pod outside the mesh is reported once, and only at the second audit if the NRI plugin may repair it", async () => {
  expect(await audits(false, NEVER)).toEqual({ found: [0], absent: 1 });
  expect(await audits(true, NEVER)).toEqual({ found: [60], absent: 1 });
});

test("a pod repaired in between is not reported, and one repaired later no longer counts", async () => {
  expect(await audits(true, 30)).toEqual({ found: [], absent: 0 });
  expect(await audits(true, 1_000)).toEqual({ found: [60], absent: 0 });
});
