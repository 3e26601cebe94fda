import { isAttached } from "./networks";

test.each([
  [undefined, false],
  ["other,mesh/linkerd-cni-2", false],
  ['[{"name":"other"}, 1]', false],
  ["[", false],
  ["other, shop/linkerd-cni@eth1", true],
  ["linkerd-cni", true],
  ['[{"name":"linkerd-cni","namespace":"shop"}]', true],
])("%s: %s", (networks, expected) => {
  expect(isAttached(networks)).toBe(expected);
});
