import { type ApiServer, authority } from "../../kubernetes/api-server";
import { base64, utf8 } from "../../system/bytes";

/**
 * The plugin's kubeconfig; without a token in it, the plugin can only ask the installer. It is JSON, and so also YAML:
 * the plugin reads it without a YAML parser, and other programs read it as usual.
 */
export function kubeconfig(
  server: ApiServer & { readonly token: string; readonly ca: string },
  hasToken = true,
): string {
  const cluster = {
    server: `https://${authority(server)}`,
    "certificate-authority-data": base64(utf8(server.ca)),
  };
  const value = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "local", cluster }],
    users: [{ name: "linkerd-cni", user: hasToken ? { token: server.token } : {} }],
    contexts: [{ name: "linkerd-cni-context", context: { cluster: "local", user: "linkerd-cni" } }],
    "current-context": "linkerd-cni-context",
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}
