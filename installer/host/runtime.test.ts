import { passesOverBroken } from "./runtime";

test.each([
  ["containerd://2.1.4", false],
  ["containerd://1.7.13-k3s1", false],
  ["cri-o://1.32.1", true],
  ["docker://26.1.0", true],
  ["frakti://1.0", undefined],
  [undefined, undefined],
])("whether %s skips a configuration that it cannot load", (runtime, passesOver) => {
  expect(passesOverBroken(runtime)).toBe(passesOver);
});
