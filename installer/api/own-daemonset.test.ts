import type { ApiResponse } from "../../kubernetes/api-server";
import { createLog } from "../../process/log";
import { guessDaemonSet, OwnDaemonSet } from "./own-daemonset";

const POD = "prod-linkerd-cni-x7k2p";
const pod = (...ownerReferences: readonly object[]): ApiResponse => ({
  status: 200,
  body: JSON.stringify({ kind: "Pod", metadata: { name: POD, ownerReferences } }),
});
const ownedBy = (kind: string, name: string) => pod({ kind, name, uid: "u", controller: true });

/** Our DaemonSet, learned from an API server with these successive answers. */
function own(...answers: readonly (ApiResponse | Error)[]) {
  const paths: string[] = [];
  const send = async ({ path }: { readonly path: string }) => {
    const answer = answers[Math.min(paths.push(path), answers.length) - 1];
    if (answer === undefined || answer instanceof Error) throw answer;
    return answer;
  };
  const connect = () => Object.assign(send, { close: () => undefined });
  const log = createLog("error", "plain", () => undefined);
  return { paths, daemonSet: new OwnDaemonSet({ namespace: "mesh", pod: POD, connect, log }) };
}

test.each([
  ["mesh/prod-linkerd-cni-b2c4d (UID 1)", true],
  ["mesh/linkerd-cni-b2c4d (UID 1)", false],
  ["other/prod-linkerd-cni-b2c4d (UID 1)", false],
  ["prod-linkerd-cni-b2c4d", undefined],
  ["installer", undefined],
])("whether %s is one of its pods: %s", (identity, expected) => {
  expect(own().daemonSet.has(identity)).toBe(expected);
});

test("the installer's pod names it, and is requested once", async () => {
  const { daemonSet, paths } = own(ownedBy("DaemonSet", "prod-linkerd-cni-other"));
  expect(daemonSet.name).toBe("prod-linkerd-cni");
  expect([await daemonSet.learn(), await daemonSet.learn()]).toEqual([true, false]);
  expect(daemonSet.name).toBe("prod-linkerd-cni-other");
  expect(paths).toEqual([`/api/v1/namespaces/mesh/pods/${POD}`]);
});

test.each<readonly [string, ApiResponse | Error]>([
  ["nobody answers", new Error("ECONNREFUSED")],
  ["it may not be read", { status: 403, body: "{}" }],
  ["it does not exist yet", { status: 404, body: "{}" }],
  ["the answer is not a Pod", { status: 200, body: "{}" }],
  ["the answer is another Pod", { status: 200, body: '{"kind":"Pod","metadata":{"name":"other"}}' }],
  ["the answer is nonsense", { status: 200, body: "<html>" }],
])("while %s, the pod's name decides, and the request is repeated", async (_, answer) => {
  const { daemonSet, paths } = own(answer, ownedBy("DaemonSet", "prod-linkerd-cni"));
  expect([await daemonSet.learn(), daemonSet.name]).toEqual([false, "prod-linkerd-cni"]);
  expect([await daemonSet.learn(), daemonSet.name]).toEqual([false, "prod-linkerd-cni"]);
  expect(paths).toHaveLength(2);
});

test("a pod of another owner, or without one, does not belong to a DaemonSet", async () => {
  for (const answer of [pod(), ownedBy("ReplicaSet", "linkerd-cni-5d4f"), { ...pod(), body: pod().body }]) {
    const { daemonSet } = own(answer);
    expect([await daemonSet.learn(), daemonSet.name]).toEqual([true, undefined]);
  }
});

test.each([
  ["linkerd-cni-x7k2p", "linkerd-cni"],
  ["prod-linkerd-cni-v2-x7k2p", "prod-linkerd-cni-v2"],
  ["linkerd-cni", undefined],
  ["x7k2p", undefined],
  // Kubernetes has truncated the name.
  [`${"n".repeat(57)}-x7k2p`, undefined],
])("the name %s belongs to a pod of %s", (name, daemonSet) => expect(guessDaemonSet(name)).toBe(daemonSet));
