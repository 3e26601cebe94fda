import { isCrio, passesAnnotations, passesOverBroken, readsDropins } from "./runtime";

test.each([
  ["containerd://2.2.9", true],
  ["containerd://2.1.0", true],
  ["containerd://v2.1.3-k3s1", true],
  ["containerd://3.0.0", true],
  ["containerd://2.0.5", false],
  ["containerd://1.7.28", false],
  ["containerd://1.6.20~ds1", false],
  ["cri-o://1.34.0", true],
  ["cri-o://1.33.4", false],
  ["docker://27.0.1", false],
  ["", false],
  [undefined, undefined],
])("%s reads drop-ins: %s", (runtime, expected) => expect(readsDropins(runtime)).toBe(expected));

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

test.each([
  ["containerd://1.7.13", true],
  ["containerd://1.4.13-k3s1", false],
  ["cri-o://1.28.4", false],
  ["docker://26.1.0", false],
])("%s passes annotations: %s", (runtime, expected) => expect(passesAnnotations(runtime)).toBe(expected));

test("CRI-O is recognized by its version string", () => {
  expect([isCrio("cri-o://1.30.0"), isCrio("containerd://2.0.0"), isCrio(undefined)]).toEqual([true, false, false]);
});
