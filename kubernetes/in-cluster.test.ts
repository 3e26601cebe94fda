import { SettingsReader } from "../process/settings";
import { readInCluster } from "./in-cluster";

const flags = { "log-level": "info" };
const reader = (environment: Record<string, string>) => new SettingsReader({ environment, flags });

test("a pod finds its API server at the kubelet's address", () => {
  const set = { KUBERNETES_SERVICE_HOST: "[fd00::1]", KUBERNETES_SERVICE_PORT: "6443", KUBE_CA_FILE: "/ca" };
  expect(readInCluster(reader(set))).toEqual({
    host: "fd00::1",
    port: 6443,
    serviceAccountDir: "/var/run/secrets/kubernetes.io/serviceaccount",
    caFile: "/ca",
  });
});

test("missing and wrong values are reported", () => {
  const read = reader({ KUBERNETES_SERVICE_PORT: "https" });
  readInCluster(read);
  expect(read.problems).toEqual([
    "KUBERNETES_SERVICE_HOST is not set: outside a pod, set it to the API server's address",
    'KUBERNETES_SERVICE_PORT "https" is not a port',
  ]);
});
