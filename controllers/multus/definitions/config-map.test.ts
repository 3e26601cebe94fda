import fc from "fast-check";
import { readConfig } from "./config-map";

const KUBECONFIG = "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig";
const read = (data: Record<string, string> | undefined) =>
  readConfig(data === undefined ? undefined : { data }, "linkerd-cni/linkerd-cni-config", KUBECONFIG);

const stanza = {
  name: "linkerd-cni",
  type: "linkerd-cni",
  log_level: "info",
  kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" },
  linkerd: {
    "incoming-proxy-port": 4143,
    "proxy-gid": 2102,
    "subnets-to-ignore": ["10.0.0.0/8"],
    "outbound-subnets-to-ignore": ["10.1.0.0/16"],
    "iptables-mode": "native",
    ipv6: true,
  },
  "pod-lookup": "annotations",
  capabilities: { "io.kubernetes.cri.pod-annotations": true },
};

test("the chart's whole stanza as a standalone configuration", () => {
  const config = read({ cni_network_config: JSON.stringify(stanza), dest_cni_bin_dir: "/opt/cni/bin" });
  expect(config.kind).toBe("valid");
  expect(JSON.parse(config.kind === "valid" ? config.text : "")).toEqual({
    ...stanza,
    cniVersion: "1.0.0",
    kubernetes: { kubeconfig: KUBECONFIG },
  });
});

test("additional fields are kept, and the same ConfigMap always gives the same text", () => {
  const extra = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(extra, extra, extra, (root, kubernetes, linkerd) => {
      const given = { ...root, ...stanza, kubernetes, linkerd: { ...linkerd, ...stanza.linkerd } };
      const data = { cni_network_config: JSON.stringify(given) };
      const config = read(data);
      const text = config.kind === "valid" ? config.text : "";
      const { cniVersion, ...rest } = JSON.parse(text);
      const { cniVersion: _, ...wanted } = JSON.parse(data.cni_network_config);
      expect(rest).toEqual({ ...wanted, kubernetes: { ...wanted.kubernetes, kubeconfig: KUBECONFIG } });
      expect(cniVersion).toBe("1.0.0");
      expect(read({ ...data })).toEqual(config);
    }),
  );
});

test("the stanza's version is kept", () => {
  const config = read({ cni_network_config: '{"type":"linkerd-cni","cniVersion":"0.4.0"}' });
  expect(JSON.parse(config.kind === "valid" ? config.text : "").cniVersion).toBe("0.4.0");
});

const WHERE = "ConfigMap linkerd-cni/linkerd-cni-config";
test.each([
  [undefined, `${WHERE} does not exist`],
  [{}, `${WHERE} has no key cni_network_config`],
  [{ cni_network_config: "{" }, `${WHERE}, key cni_network_config: not JSON: `],
  [{ cni_network_config: "" }, `${WHERE}, key cni_network_config: not JSON: `],
  [{ cni_network_config: "[]" }, `${WHERE}, key cni_network_config: not a JSON object`],
  [{ cni_network_config: '{"kubernetes":"x"}' }, `${WHERE}, key cni_network_config: kubernetes: "x" is not an object`],
  [
    { cni_network_config: '{"linkerd":{"incoming-proxy-port":70000}}' },
    `${WHERE}, key cni_network_config: linkerd.incoming-proxy-port: 70000 is not a whole number from 1 to 65535`,
  ],
  [{ cni_network_config: '{"cniVersion":"2.0.0"}' }, 'cniVersion: CNI version "2.0.0" is not supported'],
  [{ cni_network_config: '{"cniVersion":4}' }, "cniVersion: CNI version"],
])("%j is refused", (data, problem) => {
  const config = read(data);
  expect(config).toEqual({ kind: "invalid", problem: expect.stringContaining(problem) });
});
