import { readSettings } from "./settings";

const environment = {
  KUBERNETES_SERVICE_HOST: "10.0.0.1",
  LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: "node-1",
  LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-x7k2p",
};
const read = (url: string) => readSettings([`--installer-ready=${url}`], environment).installerReady;

test("the installer is asked by HTTP, or not at all", () => {
  expect(read("http://127.0.0.1:9991/ready")).toBe("http://127.0.0.1:9991/ready");
  expect(read("")).toBeUndefined();
  for (const url of ["https://127.0.0.1:9991/ready", "127.0.0.1:9991/ready", "file:///ready", "/ready"]) {
    expect(() => read(url)).toThrow(`--installer-ready "${url}" is not a URL such as http://127.0.0.1:9991/ready`);
  }
});
