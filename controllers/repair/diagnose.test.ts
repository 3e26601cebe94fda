import type { ContainerStatus, PodObject as Pod } from "../../kubernetes/types";
import { type Diagnosis, diagnose } from "./diagnose";

const exited = (exitCode: number, finishedAt?: string) => ({
  terminated: { exitCode, ...(finishedAt === undefined ? {} : { finishedAt }) },
});

function validated(status: Partial<ContainerStatus>, changes: Pod = {}): Pod {
  return {
    metadata: { name: "web", ...changes.metadata },
    spec: { restartPolicy: "Always", initContainers: [{ name: "linkerd-network-validator" }], ...changes.spec },
    status: {
      initContainerStatuses: [{ name: "linkerd-network-validator", ...status }],
      containerStatuses: [{ name: "linkerd-proxy", ready: false, state: { waiting: {} } }],
      ...changes.status,
    },
  };
}

/** A pod without a validator whose proxy runs. */
function unvalidated(spec: Pod["spec"] = {}, proxy: Partial<ContainerStatus> = {}): Pod {
  const status = { name: "linkerd-proxy", ready: true, state: { running: {} }, ...proxy };
  return { spec: { containers: [{ name: "linkerd-proxy" }], ...spec }, status: { containerStatuses: [status] } };
}

const sandboxAt = (lastTransitionTime: string, status = "True") => ({
  conditions: [{ type: "PodReadyToStartContainers", status, lastTransitionTime }],
});
const waiting = { waiting: {} };
const early = "2026-01-01T10:00:00Z";
const late = "2026-01-01T10:09:00Z";

const cases: readonly (readonly [string, Pod, Diagnosis])[] = [
  ["failed, and waits for its next start", validated({ state: waiting, lastState: exited(95) }), "failed"],
  ["failed before, nothing known of now", validated({ lastState: exited(95) }), "failed"],
  ["failed just now", validated({ state: exited(95) }), "failed"],
  ["runs again after it failed", validated({ state: { running: {} }, lastState: exited(95) }), "failed"],
  ["passed at last", validated({ state: exited(0), lastState: exited(95) }), "passed"],
  ["failed for another reason", validated({ state: exited(1), lastState: exited(95) }), "unknown"],
  ["runs for the first time", validated({ state: { running: {} } }), "unknown"],
  [
    "failed in a sandbox that is gone",
    validated({ state: { running: {} }, lastState: exited(95, early) }, { status: sandboxAt(late) }),
    "unknown",
  ],
  [
    "failed in this sandbox",
    validated({ state: waiting, lastState: exited(95, late) }, { status: sandboxAt(early) }),
    "failed",
  ],
  [
    "failed, and its sandbox is not ready",
    validated({ state: waiting, lastState: exited(95, early) }, { status: sandboxAt(late, "False") }),
    "failed",
  ],
  [
    "failed, but is being deleted",
    validated({ state: exited(95) }, { metadata: { deletionTimestamp: late } }),
    "leaving",
  ],
  [
    "failed, but comes from a file of the node",
    validated({ state: exited(95) }, { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
    "leaving",
  ],
  ["of a Job, ended by it", validated({ state: exited(95) }, job("Failed")), "leaving"],
  ["of a Job, about to end", validated({ state: exited(95) }, job("Pending")), "leaving"],
  ["failed long ago, in a bare pod", validated({ state: exited(95) }, { status: { phase: "Failed" } }), "leaving"],
  ["of a Job, ended by another container", validated({ state: exited(0) }, job("Failed")), "leaving"],
  ["of a Job that succeeded", validated({ state: exited(0) }, job("Succeeded")), "leaving"],
  ["evicted while it failed", validated({ lastState: exited(95) }, { status: { phase: "Failed" } }), "leaving"],
  ["a pod without a status", {}, "unknown"],
  ["a proxy that nothing validates", unvalidated(), "unvalidated"],
  ["a proxy that is not ready", unvalidated({}, { ready: false }), "unknown"],
  ["a proxy that has ended", unvalidated({}, { state: exited(1) }), "unknown"],
  ["a proxy beside linkerd-init", unvalidated({ initContainers: [{ name: "linkerd-init" }] }), "unknown"],
  ["a proxy in the host's network", unvalidated({ hostNetwork: true }), "unknown"],
];

function job(phase: string): Pod {
  return { spec: { restartPolicy: "Never" }, status: { phase } };
}

test.each(cases)("a validator, or a pod, that %s", (_, pod, wanted) => {
  expect(diagnose(pod)).toBe(wanted);
});

test("a native sidecar is also a proxy", () => {
  const sidecar = { name: "linkerd-proxy", ready: true, state: { running: {} } };
  expect(diagnose({ status: { initContainerStatuses: [sidecar] } })).toBe("unvalidated");
});
