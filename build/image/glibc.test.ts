import { imageTargets } from "./glibc";

test("an image is for every architecture whose C library is there, and nothing is said", () => {
  expect(imageTargets(() => true)).toEqual({ architectures: ["x64", "arm64"], lacks: undefined });
});

test("of an architecture without a C library it is said how to get one", () => {
  expect(imageTargets((architecture) => architecture === "x64")).toEqual({
    architectures: ["x64"],
    lacks: "this machine has no C library for linux/arm64: apt-get install libc6-arm64-cross",
  });
  expect(imageTargets(() => false)).toEqual({
    architectures: [],
    lacks:
      "this machine has no C library for linux/amd64 and linux/arm64: apt-get install libc6-amd64-cross libc6-arm64-cross",
  });
});
