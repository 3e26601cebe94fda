import { eventOf } from "./pod-events";

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
  ["a pod that is left alone", { decision: "skip", reason: "no proxy" }],
  ["a call that failed", { verb: "ADD", code: 101, error: "EPERM" }],
  ["a pod that needed no action of the NRI plugin", {}],
  ["no pod", { pod: undefined, code: 101, error: "EPERM" }],
])("nothing is published about %s", (_, entry) => {
  expect(eventOf({ time, verb: "NRI", pod: "shop/cart", ...entry })).toBeUndefined();
});
