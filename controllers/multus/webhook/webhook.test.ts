import { NamespaceLookup } from "./webhook";

const shop = { name: "shop", annotations: { "linkerd.io/inject": "enabled" }, terminating: false };

/** A lookup that knows namespace shop, and an API server that answers each other name with one annotation. */
function lookups() {
  const clock = { time: 0, now: () => clock.time, sleep: async () => undefined };
  const find = jest.fn(async (_: object, { name }: { name: string }) =>
    name === "missing" ? undefined : { metadata: { name, annotations: { a: "b" } } },
  );
  const namespaces = { get: (name: string) => (name === shop.name ? shop : undefined) };
  // One of many resources: the type of what is found depends on it.
  return { clock, find, lookup: new NamespaceLookup({ client: { find: find as never }, namespaces, clock }) };
}

const REFUSAL = {
  status: 503,
  message: "too many reviews of unknown namespaces: ask again",
  headers: { "retry-after": "1" },
};

test("namespaces that the watch has not reported are read at a limited rate, and known ones are not read", async () => {
  const { clock, find, lookup } = lookups();
  const answers = await Promise.allSettled(Array.from({ length: 15_000 }, (_, index) => lookup.find(`no-${index}`)));
  expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(60);
  await expect(lookup.find("one-more")).rejects.toMatchObject(REFUSAL);
  expect(await lookup.find("shop")).toBe(shop);
  expect(find).toHaveBeenCalledTimes(60);
  // The busiest ten seconds cost the API server 110 requests.
  for (clock.time = 0; clock.time < 10_000; clock.time += 10) await lookup.find("again").catch(() => undefined);
  expect(find.mock.calls.length).toBeGreaterThan(100);
  expect(find.mock.calls.length).toBeLessThanOrEqual(110);
});

test("reviews of one namespace each read it: an earlier answer may be from before it existed", async () => {
  const { find, lookup } = lookups();
  const both = await Promise.all([lookup.find("new"), lookup.find("new")]);
  expect(both).toMatchObject([{ annotations: { a: "b" } }, { annotations: { a: "b" } }]);
  expect(await lookup.find("missing")).toEqual({ name: "missing", annotations: {} });
  expect(find).toHaveBeenCalledTimes(3);
});
