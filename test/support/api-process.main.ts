/**
 * The program of ApiProcess. Takes `{ delayMs, runtime }`, answers the paths of the `{ requests }` and the number of TLS
 * `{ handshakes }` since the last one.
 */
import { ApiStub, json } from "./api-server";

const annotations = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1",
  "linkerd.io/proxy-version": "edge-26.7.1",
};
const metadata = (path: string) => ({ name: path.split("/").at(-1), namespace: path.split("/")[4] });

/** 3 MiB of environment variables: twice what etcd takes by default. */
const manyVariables = Array.from({ length: 3072 }, (_, at) => ({ name: `V${at}`, value: "x".repeat(1000) }));

/** A pod is meshed when its name is `meshed`, or `large`, which is a large object too. */
function podObject(path: string): object {
  const isLarge = path.endsWith("/large");
  const meshed = isLarge || path.endsWith("/meshed");
  return {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { ...metadata(path), annotations: meshed ? annotations : {} },
    spec: {
      containers: [
        { name: "app", ...(isLarge ? { env: manyVariables } : {}) },
        ...(meshed ? [{ name: "linkerd-proxy" }] : []),
      ],
    },
  };
}

/** Container runtime of every node. */
let [, , containerRuntimeVersion = ""] = process.argv;

const nodeObject = (path: string): object => ({
  kind: "Node",
  apiVersion: "v1",
  metadata: { name: metadata(path).name },
  status: { nodeInfo: { containerRuntimeVersion } },
});

function objectAt(path: string): object {
  if (path.includes("/pods/")) return podObject(path);
  if (path.includes("/nodes/")) return nodeObject(path);
  return { kind: "Namespace", apiVersion: "v1", metadata: { name: metadata(path).name, annotations: {} } };
}

async function main(): Promise<void> {
  let delayMs = 0;
  const stub = await ApiStub.start((request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const answer = () => json(200, objectAt(path))(request, response);
    // Node's shortest timer takes a millisecond.
    if (delayMs === 0) answer();
    else setTimeout(answer, delayMs);
  });
  process.on("message", (message: { delayMs: number; runtime?: string }) => {
    delayMs = message.delayMs;
    containerRuntimeVersion = message.runtime ?? containerRuntimeVersion;
    process.send?.({ requests: stub.requests.splice(0), handshakes: stub.handshakes });
    stub.handshakes = 0;
  });
  process.on("disconnect", () => {
    stub.close();
    process.exit(0);
  });
  process.send?.({ kubeconfig: stub.kubeconfig(), port: stub.port, ca: stub.ca, runDir: stub.runDir });
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
