import { PLUGIN_TYPE } from "../cni/stanza";
import { stanzaFromText } from "./stanza";
import { planValidation, readSettings } from "./validate";

const planned = (linkerd: object, ...addresses: readonly string[]) =>
  planValidation(stanzaFromText(JSON.stringify({ type: PLUGIN_TYPE, linkerd })), addresses);

test("each redirected family of the pod is tried, with the configured port of the proxy", () => {
  const ports = { "outgoing-proxy-port": 5140, ipv6: true };
  expect(planned(ports, "10.1.2.3", "fd00::3")).toEqual({
    proxyPort: 5140,
    targets: [
      { host: "192.0.2.1", port: 64321 },
      { host: "2001:db8::1", port: 64321 },
    ],
  });
  expect(planned({ ipv6: false }, "fd00::3", "10.1.2.3").targets.map(({ host }) => host)).toEqual(["192.0.2.1"]);
  expect(planned({ ipv6: true }, "fd00::3").targets.map(({ host }) => host)).toEqual(["2001:db8::1"]);
});

test("a port that is not redirected is not tried", () => {
  const skipping = (...ports: readonly string[]) => planned({ "outbound-ports-to-ignore": ports }, "10.1.2.3");
  expect(skipping("64321", "64000-64320").targets).toEqual([{ host: "192.0.2.1", port: 63999 }]);
  expect(() => skipping("1-65535")).toThrow("ignoreOutboundPorts: no port up to 64321 is redirected");
});

test("if nothing is redirected, the reason is an error", () => {
  expect(() => planned({ ipv6: false }, "fd00::3")).toThrow(
    "disableIPv6: this pod has no IPv4 address, so nothing is redirected",
  );
  expect(() => planned({ simulate: true }, "10.1.2.3")).toThrow("the plugin leaves meshed pods alone: simulated");
});

test("the error about missing settings names the source of each", () => {
  expect(() => readSettings([], { NODE_NAME: "node-1" })).toThrow(
    "POD_NAMESPACE is not set: set it from metadata.namespace; POD_IPS is not set: set it from status.podIPs; " +
      "CNI_NETWORK_CONFIG is not set: set it from the ConfigMap",
  );
});
