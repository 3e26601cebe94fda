import type { PodObject as Pod } from "../../kubernetes/types";
import { PodStore } from "./pod-store";

let store: PodStore;
let overflows: number;
let changed: string[];
let over: string[];

beforeEach(() => {
  [overflows, changed, over] = [0, [], []];
  store = new PodStore({
    now: () => 0,
    changed: (uid) => changed.push(uid),
    ended: ({ name }) => over.push(name),
    overflow: () => {
      overflows += 1;
    },
  });
});

const apply = (object: Pod, type: "LISTED" | "ADDED" | "MODIFIED" = "ADDED") => store.apply({ type, object });
const names = () => [...store.values()].map(({ name }) => name);

const ended = (phase: string, exitCode: number) => ({
  phase,
  initContainerStatuses: [{ name: "linkerd-network-validator", state: { terminated: { exitCode } } }],
});
const jobsPod = (name: string, status: NonNullable<Pod["status"]>): Pod => ({
  metadata: { name, uid: name },
  spec: { restartPolicy: "Never" },
  status,
});
const containerStatuses = [{ name: "linkerd-proxy", ready: true, state: { running: {} } }];

test("completed pods do not count, however many there are", () => {
  for (let index = 0; index < 3_000; index++) {
    apply(jobsPod(`done-${index}`, ended("Succeeded", 0)));
    apply(jobsPod(`failed-${index}`, ended("Failed", 0)));
  }
  apply(jobsPod("failed-long-ago", ended("Failed", 95)));
  expect([names(), over]).toEqual([[], []]);
  expect(overflows).toBe(0);
});

test("a tracked pod that its validator ends is reported once, unless it is being deleted", () => {
  const begin = (name: string) => apply(jobsPod(name, { phase: "Pending" }));
  for (const name of ["told", "deleted", "passed"]) begin(name);
  const deleted = jobsPod("deleted", ended("Failed", 95));
  apply({ ...deleted, metadata: { ...deleted.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }, "MODIFIED");
  apply(jobsPod("passed", ended("Failed", 0)), "MODIFIED");
  for (const phase of ["Pending", "Failed"]) apply(jobsPod("told", ended(phase, 95)), "MODIFIED");
  expect([names(), over]).toEqual([[], ["told"]]);
});

test("a pod is replaced by a controller that keeps a number of pods, or probably does", () => {
  const replaced = (restartPolicy: string, kind?: string) => {
    const reference = { apiVersion: "v1", kind: kind ?? "", name: "x", uid: "x", controller: true };
    const metadata = { name: "web", uid: `${kind} ${restartPolicy}` };
    const owned = { ...metadata, ...(kind === undefined ? {} : { ownerReferences: [reference] }) };
    apply({ metadata: owned, spec: { restartPolicy } });
    return store.get(metadata.uid)?.isReplaced;
  };
  expect(replaced("Always", "ReplicaSet")).toBe(true);
  expect(replaced("OnFailure", "Job")).toBe(true);
  expect(replaced("Always", "CloneSet")).toBe(true);
  expect(replaced("OnFailure", "Workflow")).toBe(false);
  expect(replaced("Always")).toBe(false);
});

test("a pod's current controller counts", () => {
  const metadata = { name: "web", uid: "web" };
  const reference = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "web-1", controller: true };
  const seen = (): readonly unknown[] => {
    const { controller, isReplaced, owner } = store.get("web") ?? {};
    return [isReplaced, owner, controller?.name];
  };
  apply({ metadata: { ...metadata, ownerReferences: [reference] } });
  expect(seen()).toEqual([true, "web-1", "web-1"]);
  apply({ metadata }, "MODIFIED");
  expect(seen()).toEqual([false, "default/web", undefined]);
  apply({ metadata: { ...metadata, ownerReferences: [reference] } }, "MODIFIED");
  expect(seen()).toEqual([true, "web-1", "web-1"]);
});

test("a completed pod is no longer tracked or audited", () => {
  const metadata = { name: "web", uid: "web" };
  apply({ metadata, status: { containerStatuses } });
  const [pod] = [...store.values()];
  expect(pod?.audited).toBeDefined();
  apply({ metadata, status: { phase: "Failed" } }, "MODIFIED");
  expect(names()).toEqual([]);
  expect(pod && store.get(pod.uid)).toBeUndefined();
});

test("a pod keeps its entry after changes and new lists", () => {
  const metadata = { name: "web", uid: "web" };
  apply({ metadata });
  const pod = store.get("web");
  if (pod !== undefined) pod.attempts = 3;
  apply({ metadata, status: { containerStatuses } }, "MODIFIED");
  store.apply({ type: "LISTING" });
  apply({ metadata }, "LISTED");
  store.apply({ type: "SYNCED" });
  expect(store.get("web")).toBe(pod);
  expect(pod?.attempts).toBe(3);
});

test("pods missing from a list are removed", () => {
  for (const name of ["one", "two"]) apply({ metadata: { name, uid: name } });
  expect(store.synced).toBe(false);
  store.apply({ type: "LISTING" });
  apply({ metadata: { name: "two", uid: "two" } }, "LISTED");
  changed = [];
  store.apply({ type: "SYNCED" });
  expect([names(), changed, store.synced]).toEqual([["two"], ["one"], true]);
});

test("pods beyond the maximum are counted and not tracked", () => {
  for (let index = 0; index < 5_002; index++) apply({ metadata: { name: `pod-${index}`, uid: `uid-${index}` } });
  expect([names().length, overflows]).toEqual([5_000, 2]);
});
