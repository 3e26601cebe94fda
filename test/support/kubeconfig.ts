/** A kubeconfig for a test's API server. */
import { type ApiServer, authority } from "../../kubernetes/api-server";

export function kubeconfig(server: ApiServer & { readonly token: string; readonly ca: string }): string {
  const cluster = {
    server: `https://${authority(server)}`,
    "certificate-authority-data": Buffer.from(server.ca).toString("base64"),
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "local", cluster }],
    users: [{ name: "test", user: { token: server.token } }],
    contexts: [{ name: "test", context: { cluster: "local", user: "test" } }],
    "current-context": "test",
  });
}
