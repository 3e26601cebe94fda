import { namespaceOf } from "./namespace";

const object = (annotations: Record<string, string>, more: object = {}) => ({
  metadata: { name: "shop", annotations, labels: { team: "a" }, ...more },
});

test("keeps no more of a namespace than is needed", () => {
  const applied = { "kubectl.kubernetes.io/last-applied-configuration": "{}", "linkerd.io/multus": "enabled" };
  expect(namespaceOf(object(applied))).toEqual({
    name: "shop",
    annotations: { "linkerd.io/multus": "enabled" },
    terminating: false,
  });
});

test("knows a namespace that is being deleted", () => {
  expect(namespaceOf(object({}, { deletionTimestamp: "2026-01-01T00:00:00Z" })).terminating).toBe(true);
});
