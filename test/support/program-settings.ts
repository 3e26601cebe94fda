/** Settings with which tests run programs of the image on a node beside an API server of their own. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestNode } from "../kernel/installer-node";
import type { Answer, ApiStub } from "./api-server";
import { certificateFor } from "./webhook";

/** Answers as the API server of a cluster without objects: watches stay open. */
export const emptyCluster: Answer = (request, response) => {
  response.writeHead(200, { "content-type": "application/json" });
  if (request.url?.includes("watch=")) response.flushHeaders();
  else response.end(JSON.stringify({ metadata: { name: "shop", resourceVersion: "1" }, items: [] }));
};

/** Environment of any program. @param port of its probes, for those that read it from there */
export const environmentOf = (node: TestNode, api: ApiStub, port: number): Readonly<Record<string, string>> =>
  node.environment({
    KUBERNETES_SERVICE_PORT: String(api.port),
    NODE_NAME: "node-1",
    LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: "node-1",
    LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-abcde",
    POD_NAMESPACE: "linkerd-multus",
    POD_NAME: "linkerd-multus-abcde",
    HEALTH_PORT: String(port),
    NRI_SOCKET_DIR: node.root,
    NRI_NETNS_DIR: node.root,
  });

/** Flags of a repair controller. */
export const repairFlags = (port: number) => [`--admin-addr=127.0.0.1:${port}`, "--installer-ready="];

/** Writes a certificate for the webhook to a directory. @returns flags of an operator that uses it, and its CA as PEM */
export function operatorFlags(directory: string, ports: { readonly health: number; readonly webhook: number }) {
  const { cert, key } = certificateFor("webhook");
  writeFileSync(join(directory, "tls.crt"), cert);
  writeFileSync(join(directory, "tls.key"), key);
  const flags = [
    `-health-probe-bind-address=127.0.0.1:${ports.health}`,
    `-webhook-port=${ports.webhook}`,
    "-webhook-certificates=mounted",
    `-webhook-certificate-dir=${directory}`,
    "-leader-elect=false",
    "-metrics-bind-address=0",
  ];
  return { flags, ca: cert };
}
