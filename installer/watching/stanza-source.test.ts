import { readSettings } from "../settings";
import { readStanza } from "./stanza-source";

const environment = {
  DEST_CNI_NET_DIR: "/etc/cni/net.d/",
  KUBERNETES_SERVICE_HOST: "10.96.0.1",
  KUBERNETES_SERVICE_PORT: "443",
};
const read = (stanza: object, more = {}) =>
  readStanza(readSettings([], { ...environment, ...more, CNI_NETWORK_CONFIG: JSON.stringify(stanza) }));
const ours = { type: "linkerd-cni", "own-pods": { namespace: "linkerd-cni", daemonset: "linkerd-cni" }, last: 1 };

test("the kubeconfig's path takes the place of its name", () => {
  const kubernetes = { kubeconfig: "__KUBECONFIG_FILEPATH__" };
  expect(read({ type: "linkerd-cni", kubernetes })).toEqual({
    type: "linkerd-cni",
    kubernetes: { kubeconfig: "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig" },
  });
});

test("the installer's own pods are where it runs, whatever namespace the text names", () => {
  const moved = { POD_NAMESPACE: "mesh-cni", DAEMONSET_NAME: "linkerd-cni" };
  const found = read(ours, moved);
  expect(found).toEqual({ ...ours, "own-pods": { namespace: "mesh-cni", daemonset: "linkerd-cni" } });
  expect(Object.keys(found)).toEqual(Object.keys(ours));
  expect(read(ours)).toEqual(ours);
});
