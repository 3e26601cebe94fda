import { parseStanza } from "../../cni/parse-stanza";
import { PLUGIN_TYPE } from "../../cni/stanza";
import { KubernetesClient } from "../../kubernetes/client";
import { systemClock } from "../../process/clock";
import { Auditor } from "./audit";
import { PodStore } from "./pod-store";

const quiet = () => undefined;
const log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };

test("a pod deleted before its turn is not audited", async () => {
  const stopping = new AbortController();
  const pods = new PodStore({ now: () => 0, changed: quiet, ended: quiet, overflow: quiet });
  const pod = (name: string, podIP: string) => ({
    metadata: { name, namespace: "shop", uid: name },
    spec: { containers: [{ name: "linkerd-proxy" }] },
    status: { podIP, containerStatuses: [{ name: "linkerd-proxy", ready: true, state: { running: {} } }] },
  });
  for (const [name, podIP] of [
    ["first", "10.0.0.1"],
    ["second", "10.0.0.2"],
    ["third", "10.0.0.3"],
  ] as const) {
    pods.apply({ type: "ADDED", object: pod(name, podIP) });
  }
  const probed = new Set<string>();
  const auditor = new Auditor({
    pods,
    client: new KubernetesClient(async () => ({ status: 200, body: '{"metadata":{}}' })),
    stanza: parseStanza({ type: PLUGIN_TYPE, linkerd: { "incoming-proxy-port": 4143 } }, PLUGIN_TYPE),
    probe: async (host) => {
      probed.add(host);
      if (host === "10.0.0.1") pods.apply({ type: "DELETED", object: pod("second", "10.0.0.2") });
      if (host === "10.0.0.3") stopping.abort();
      return "open";
    },
    waitForNri: false,
    found: async () => undefined,
    clock: systemClock,
    log,
    signal: stopping.signal,
  });
  await auditor.run();
  expect([...probed]).toEqual(["10.0.0.1", "10.0.0.3"]);
});
