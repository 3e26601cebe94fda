import { readSettings } from "../settings";
import { stanzaForNode } from "./stanza";

const environment = {
  DEST_CNI_NET_DIR: "/etc/cni/net.d/",
  KUBERNETES_SERVICE_HOST: "10.96.0.1",
  KUBERNETES_SERVICE_PORT: "443",
};
const read = (stanza: object, more = {}, daemonset?: string) =>
  stanzaForNode(readSettings([], { ...environment, ...more, CNI_NETWORK_CONFIG: JSON.stringify(stanza) }), daemonset);
const ours = { type: "linkerd-cni", "own-pods": { namespace: "linkerd-cni", daemonset: "linkerd-cni" }, last: 1 };

test("the kubeconfig's path replaces its placeholder", () => {
  const kubernetes = { kubeconfig: "__KUBECONFIG_FILEPATH__" };
  expect(read({ type: "linkerd-cni", kubernetes })).toEqual({
    type: "linkerd-cni",
    kubernetes: { kubeconfig: "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig" },
  });
});

test("the installer's pods are those of its DaemonSet, whatever name and namespace the text has", () => {
  const moved = { POD_NAMESPACE: "mesh-cni", POD_NAME: "prod-linkerd-cni-x7k2p" };
  const found = read(ours, moved, "prod-linkerd-cni");
  expect(found).toEqual({ ...ours, "own-pods": { namespace: "mesh-cni", daemonset: "prod-linkerd-cni" } });
  expect(Object.keys(found)).toEqual(Object.keys(ours));
  expect(read(ours)).toEqual(ours);
  expect(read(ours, moved)).toEqual(ours);
});
