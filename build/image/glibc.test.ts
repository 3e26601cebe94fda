import { imageTargets, withoutPreload } from "./glibc";

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

test("a loader forgets the name of the file with libraries to preload, and nothing else", () => {
  const loader = (name: string) => Buffer.from(`code\0${name}\0/etc/ld.so.cache\0`);
  const made = withoutPreload(loader("/etc/ld.so.preload"));
  expect(Buffer.from(made)).toEqual(loader("\0etc/ld.so.preload"));
});

test.each(["", "\0/etc/ld.so.preload\0\0/etc/ld.so.preload\0", "\0/opt/etc/ld.so.preload\0"])(
  "a loader that does not have it exactly once is refused (%j)",
  (text) => expect(() => withoutPreload(Buffer.from(text))).toThrow("names /etc/ld.so.preload not exactly once"),
);
