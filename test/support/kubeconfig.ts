/** A kubeconfig for a test's API server. */
import { type ApiServer, authority } from "../../kubernetes/api-server";

export function kubeconfig(server: Pick<ApiServer, "host" | "port" | "ca" | "token">): string {
  const { ca = "", token = "" } = server;
  const cluster = {
    server: `https://${authority(server)}`,
    "certificate-authority-data": Buffer.from(ca).toString("base64"),
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "local", cluster }],
    users: [{ name: "test", user: { token } }],
    // linkerd's plugin takes no context but the one of this name.
    contexts: [{ name: "linkerd-cni-context", context: { cluster: "local", user: "test" } }],
    "current-context": "linkerd-cni-context",
  });
}
