import { eventOf } from "./pod-events";

const call = (entry: object) => eventOf({ verb: "ADD", pod: "shop/cart", ...entry });

test.each([
  ["rules that were refused", { code: 101, error: "EPERM" }, "LinkerdCNIRedirectFailed", "EPERM"],
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
])("a call that ends in %s is told", (_, entry, reason, note) => {
  expect(call(entry)).toEqual({ namespace: "shop", name: "cart", reason, note });
});

test.each([
  ["a redirect", { decision: "redirect" }],
  ["a pod that is left alone", { decision: "skip", reason: "no proxy" }],
  ["another verb", { verb: "CHECK", code: 100, error: "differ" }],
  ["no pod", { pod: undefined, code: 101, error: "EPERM" }],
])("nothing is told about %s", (_, entry) => {
  expect(call(entry)).toBeUndefined();
});
