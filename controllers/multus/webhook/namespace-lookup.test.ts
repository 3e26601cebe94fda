import type { NamespaceObject } from "../../../kubernetes/types";
import { NamespaceLookup } from "./namespace-lookup";

const shop = { name: "shop", annotations: { "linkerd.io/inject": "enabled" }, terminating: false };

/** A lookup that knows namespace shop, and an API server that is silent until it is told to answer. */
function silent() {
  let answer: (found: NamespaceObject | undefined) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const answered = new Promise<NamespaceObject | undefined>((resolve, reject) => {
    answer = resolve;
    fail = reject;
  });
  const find = jest.fn(() => answered);
  const namespaces = { get: (name: string) => (name === shop.name ? shop : undefined) };
  // One of many resources: the type of what is found depends on it.
  const lookup = new NamespaceLookup({ client: { find: find as never }, namespaces });
  const crowd = Array.from({ length: 64 }, (_, index) => lookup.find(`unknown-${index}`));
  return { lookup, find, crowd: Promise.allSettled(crowd), answer, fail };
}

const REFUSAL = {
  status: 503,
  message: "too many reviews of unknown namespaces at once: ask again",
  headers: { "retry-after": "1" },
};

test("64 namespaces are read at once; further ones are refused, and known ones are not", async () => {
  const { lookup, find, crowd, answer } = silent();
  await expect(lookup.find("one-more")).rejects.toMatchObject(REFUSAL);
  expect(await lookup.find("shop")).toBe(shop);
  expect(find).toHaveBeenCalledTimes(64);
  answer(undefined);
  expect((await crowd)[63]).toEqual({ status: "fulfilled", value: { name: "unknown-63", annotations: {} } });
  expect(await lookup.find("one-more")).toEqual({ name: "one-more", annotations: {} });
});

test("reviews of one namespace each read it: an earlier answer may be from before it existed", async () => {
  const { lookup, find, crowd, answer } = silent();
  answer({ metadata: { name: "new", annotations: { a: "b" } } });
  await crowd;
  const both = await Promise.all([lookup.find("new"), lookup.find("new")]);
  expect(both).toMatchObject([{ annotations: { a: "b" } }, { annotations: { a: "b" } }]);
  expect(find).toHaveBeenCalledTimes(66);
});

test("a lookup that fails makes room for another", async () => {
  const { lookup, crowd, fail } = silent();
  fail(new Error("no answer"));
  await crowd;
  const again = Array.from({ length: 64 }, () => lookup.find("again"));
  for (const each of again) await expect(each).rejects.toThrow("no answer");
});
