import { askForRuntime } from "./runtime";

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
