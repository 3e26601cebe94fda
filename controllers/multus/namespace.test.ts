import { Store } from "../../kubernetes/store";
import type { NamespaceObject } from "../../kubernetes/types";
import { type Namespace, namespaceOf } from "./namespace";

const store = (changed?: (name: string) => void) =>
  new Store<NamespaceObject, Namespace>({ view: namespaceOf, ...(changed === undefined ? {} : { changed }) });

const object = (name: string, annotations: Record<string, string> = {}, more: object = {}) => ({
  metadata: { name, annotations, labels: { team: "a" }, ...more },
});

test("holds what the watch tells, and no more than is needed", () => {
  const namespaces = store();
  namespaces.apply({ type: "LISTING" });
  const applied = { "kubectl.kubernetes.io/last-applied-configuration": "{}", "linkerd.io/multus": "enabled" };
  namespaces.apply({ type: "LISTED", object: object("shop", applied) });
  expect(namespaces.synced).toBe(false);
  namespaces.apply({ type: "SYNCED" });
  expect(namespaces.synced).toBe(true);
  expect(namespaces.get("shop")).toEqual({
    name: "shop",
    annotations: { "linkerd.io/multus": "enabled" },
    terminating: false,
  });
  namespaces.apply({ type: "MODIFIED", object: object("shop", {}, { deletionTimestamp: "2026-01-01T00:00:00Z" }) });
  expect(namespaces.get("shop")?.terminating).toBe(true);
  namespaces.apply({ type: "DELETED", object: object("shop") });
  expect(namespaces.get("shop")).toBeUndefined();
});

test("what another list does not show is gone, and is told", () => {
  const changed: string[] = [];
  const namespaces = store((name) => changed.push(name));
  namespaces.apply({ type: "ADDED", object: object("old") });
  namespaces.apply({ type: "ADDED", object: object("stays") });
  changed.length = 0;
  namespaces.apply({ type: "LISTING" });
  namespaces.apply({ type: "LISTED", object: object("stays") });
  expect([...namespaces.keys()]).toEqual(["old", "stays"]);
  namespaces.apply({ type: "SYNCED" });
  expect(changed).toEqual(["stays", "old"]);
  expect([...namespaces.keys()]).toEqual(["stays"]);
});
