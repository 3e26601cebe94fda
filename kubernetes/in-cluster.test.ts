import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SettingsReader } from "../process/settings";
import { authority } from "../system/certificates.testing";
import { readApiServer, readInCluster } from "./in-cluster";

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

test.each(["api.example.com", "k8s_api", "10.96.0.1", "fd00::1", "::ffff:10.96.0.1", "fe80::1%eth0"])(
  "KUBERNETES_SERVICE_HOST may be %s, with or without brackets",
  (host) => {
    const hostOf = (value: string) => {
      const read = reader({ KUBERNETES_SERVICE_HOST: value });
      const found = readInCluster(read).host;
      expect(read.problems).toEqual([]);
      return found;
    };
    expect(hostOf(host)).toBe(host);
    if (host.includes(":")) expect(hostOf(`[${host}]`)).toBe(host);
  },
);

test.each([
  "127.0.0.1:6443",
  "[fd00::1]:6443",
  "https://api.example.com",
  "api.example.com/",
  "api.example.com ",
  " 10.96.0.1",
  "[10.96.0.1]",
  "[fd00::1",
  "user@api.example.com",
  "a".repeat(254),
  "a\nb",
])("KUBERNETES_SERVICE_HOST %j is refused by name", (host) => {
  const read = reader({ KUBERNETES_SERVICE_HOST: host });
  readInCluster(read);
  expect(read.problems).toEqual([
    `KUBERNETES_SERVICE_HOST ${JSON.stringify(host)} is not a host name or an IP address alone, such as 10.96.0.1`,
  ]);
});

test("blanks in a CA file that Go accepts are left out", () => {
  const directory = mkdtempSync(join(tmpdir(), "in-cluster-"));
  try {
    const { cert } = authority("CA", { names: [] });
    const blanks = cert
      .replace(/^(-----BEGIN CERTIFICATE-----)$/m, "$1 \t")
      .replace(/^([\w+/]{10})([\w+/]+)$/gm, "$1 $2  ");
    expect(blanks).not.toBe(cert);
    writeFileSync(join(directory, "token"), "secret\n");
    writeFileSync(join(directory, "ca.crt"), blanks);
    const { ca } = readApiServer({ host: "a", port: 1, serviceAccountDir: directory });
    expect(ca).toBe(cert);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("missing and wrong values are reported", () => {
  const read = reader({ KUBERNETES_SERVICE_PORT: "https" });
  readInCluster(read);
  expect(read.problems).toEqual([
    "KUBERNETES_SERVICE_HOST is not set: outside a pod, set it to the API server's address",
    'KUBERNETES_SERVICE_PORT "https" is not a port',
  ]);
});
