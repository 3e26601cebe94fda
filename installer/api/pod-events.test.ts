import { eventOf } from "./pod-events";

const call = (entry: object) => eventOf({ verb: "ADD", pod: "shop/cart", ...entry });

test.each([
  ["refused rules", { code: 101, error: "EPERM" }, "LinkerdCNIRedirectFailed", "EPERM"],
  ["a defect", { code: 102, error: "oops" }, "LinkerdCNIRedirectFailed", "oops"],
  [
    "an annotation",
    { code: 7, error: 'config.linkerd.io/proxy-uid on pod shop/cart: "x" is not a numeric id' },
    "LinkerdCNIConfigInvalid",
    'config.linkerd.io/proxy-uid on pod shop/cart: "x" is not a numeric id',
  ],
  ["no answer", { code: 11, error: "timed out" }, "LinkerdCNIApiUnreachable", "timed out"],
  [
    "a decision without an answer",
    { decision: "redirect", reason: "timed out" },
    "LinkerdCNIApiUnreachable",
    "Redirected by the pod's annotations alone: timed out",
  ],
])("a call that ends in %s is published", (_, entry, reason, note) => {
  expect(call(entry)).toEqual({ namespace: "shop", name: "cart", type: "Warning", reason, note });
});

const time = "2026-01-01T00:00:00.000Z";
const suffix = `nri-${Date.parse(time).toString(16)}`;

test("a pod that the NRI plugin repaired is published, once for each repair", () => {
  const mended = { time, verb: "NRI", pod: "shop/cart", decision: "redirect", mode: "native", reason: "no rules" };
  expect(eventOf(mended)).toEqual({
    namespace: "shop",
    name: "cart",
    type: "Normal",
    reason: "LinkerdCNIRedirectMended",
    note: "The pod ran without its redirect. The rules were set in place; no restart is needed",
    suffix,
  });
});

test.each([
  ["whose rules were edited", 100, "LinkerdCNIRedirectNotMended"],
  ["whose annotations are wrong", 7, "LinkerdCNIConfigInvalid"],
  ["that could not be looked up", 11, "LinkerdCNIApiUnreachable"],
  ["whose rules were refused", 101, "LinkerdCNIRedirectFailed"],
])("the NRI plugin also publishes a pod %s", (_, code, reason) => {
  const told = { namespace: "shop", name: "cart", type: "Warning", reason, note: "why", suffix };
  expect(eventOf({ time, verb: "NRI", pod: "shop/cart", code, error: "why" })).toEqual(told);
});

test.each([
  ["a redirect", { decision: "redirect" }],
  ["a pod that is left alone", { decision: "skip", reason: "no proxy" }],
  ["another verb", { verb: "CHECK", code: 100, error: "differ" }],
  ["a pod that needed no action of the NRI plugin", { verb: "NRI" }],
  ["no pod", { pod: undefined, code: 101, error: "EPERM" }],
])("nothing is published about %s", (_, entry) => {
  expect(call(entry)).toBeUndefined();
});
