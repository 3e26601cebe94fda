import { Store } from "./store";
import type { PodObject } from "./types";
import type { Notice } from "./watch";

const pod = (name: string, namespace?: string): PodObject => ({
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
});
const changed: string[] = [];
const told = () => changed.splice(0);

function storeOf(synced: () => void = () => undefined) {
  changed.length = 0;
  return new Store<PodObject, string>({
    view: ({ metadata }) => metadata?.name ?? "",
    changed: (key) => changed.push(key),
    synced,
  });
}

const list = (...objects: PodObject[]): Notice<PodObject>[] => [
  { type: "LISTING" },
  ...objects.map((object) => ({ type: "LISTED", object }) as const),
  { type: "SYNCED" },
];

test("objects missing from a second list are removed, but only at its end", () => {
  let synced = 0;
  const store = storeOf(() => {
    synced += 1;
  });
  for (const notice of list(pod("a", "shop"), pod("b"))) store.apply(notice);
  expect([store.synced, synced, store.size, told()]).toEqual([true, 1, 2, ["shop/a", "b"]]);
  store.apply({ type: "LISTING" });
  store.apply({ type: "LISTED", object: pod("b") });
  expect(store.get("shop/a")).toBe("a");
  store.apply({ type: "SYNCED" });
  expect([[...store.keys()], [...store.values()], told()]).toEqual([["b"], ["b"], ["b", "shop/a"]]);
});

test("changes arrive one by one, and the store can be cleared", () => {
  const store = storeOf();
  for (const notice of list(pod("a"))) store.apply(notice);
  store.apply({ type: "ADDED", object: pod("b") });
  store.apply({ type: "MODIFIED", object: pod("b") });
  store.apply({ type: "DELETED", object: pod("a") });
  expect([[...store.keys()], told()]).toEqual([["b"], ["a", "b", "b", "a"]]);
  store.clear();
  expect([store.synced, store.size, told()]).toEqual([false, 0, ["b"]]);
});
