import { askForRuntime, passesOverBroken } from "./runtime";

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

test("the node is asked for as the API server has it in memory, without a read of etcd", async () => {
  const asked: string[] = [];
  const node = { status: { nodeInfo: { containerRuntimeVersion: "containerd://2.1.4" } } };
  const transport = async ({ path }: { path: string }) => {
    asked.push(path);
    return { status: 200, body: JSON.stringify(node) };
  };
  const found = await askForRuntime(() => Object.assign(transport, { close: () => undefined }), "node-1");
  expect(found).toBe("containerd://2.1.4");
  expect(asked).toEqual(["/api/v1/nodes/node-1?resourceVersion=0"]);
});
