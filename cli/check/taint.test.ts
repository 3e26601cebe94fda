import { leadsSomewhere } from "../links.testing";
import { cluster, node, onTwo, rolledOut, said, unready, waitingFor } from "./cluster.testing";
import { inspect } from "./inspect";
import type { Snapshot } from "./snapshot";

const TAINTED = { spec: { taints: [{ key: "linkerd.io/cni-not-ready", effect: "NoSchedule" }] } };

const cases: readonly (readonly [string, Partial<Snapshot>, readonly string[]])[] = [
  [
    "a startup taint that nothing removes",
    {
      nodes: { value: [node("one"), node("two", TAINTED)] },
      pending: { value: [waitingFor("2 node(s) had untolerated taint {linkerd.io/cni-not-ready: }")] },
    },
    [
      "error: node two has the startup taint linkerd.io/cni-not-ready, and 1 pod waits for a node: nothing removes it, because nodeTaint.enabled is false",
    ],
  ],
  [
    "a startup taint, while pods wait for other reasons",
    {
      nodes: { value: [node("one"), node("two", TAINTED)] },
      pending: { value: [waitingFor("2 node(s) had untolerated taint {gpu: a}")] },
    },
    [
      "warning: node two has the startup taint linkerd.io/cni-not-ready: nothing removes it, because nodeTaint.enabled is false",
    ],
  ],
  [
    "a startup taint that its pod is about to remove",
    {
      ...rolledOut({}, { nodeTaint: { enabled: true } }),
      ...onTwo({ conditions: unready }),
      nodes: { value: [node("one"), node("two", TAINTED)] },
    },
    ["error: pod linkerd-cni-two is not ready: containers with unready status: [install-cni]"],
  ],
];

test.each(cases)("%s", (_, given, expected) => {
  const findings = inspect(cluster(given));
  expect(said(findings)).toEqual(expected);
  for (const { problem, remedy, link } of findings) {
    expect(problem === undefined || (remedy !== undefined && leadsSomewhere(link))).toBe(true);
  }
});
