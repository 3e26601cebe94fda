import { Label, MULTUS_NAME } from "../../../cni/contract";
import { KubernetesClient } from "../../../kubernetes/client";
import type { ApiRequest, Transport } from "../../../kubernetes/transport";
import { systemClock } from "../../../process/clock";
import { createLog } from "../../../process/log";
import { createMetrics } from "../metrics";
import { DefinitionWriter, Stale } from "./writer";

function writerBy(send: Transport, metrics = createMetrics()): DefinitionWriter {
  const log = createLog("error", "plain", () => undefined);
  return new DefinitionWriter({ client: new KubernetesClient(send), clock: systemClock, log, metrics, podName: "one" });
}

/** A definition of the operator, to which another client has written as well. */
const annotated = {
  metadata: {
    ...{ name: "linkerd-cni", uid: "one", labels: { [Label.managedBy]: MULTUS_NAME }, annotations: { seen: "1" } },
    managedFields: [{ manager: MULTUS_NAME }, { manager: "team-a" }],
  },
  spec: { config: "{}" },
};

test("a process that no longer leads after its read does not write", async () => {
  const calls: (string | undefined)[] = [];
  const send = async ({ method = "GET" }: ApiRequest) => {
    calls.push(method);
    return { status: 404, body: "{}" };
  };
  const writer = writerBy(send);
  await expect(writer.create("shop", "{}", () => false)).rejects.toThrow("this process does not lead any more");
  expect(calls).toEqual(["GET"]);
});

test("does not change a definition that the watch has not reported yet, regardless of its writer", async () => {
  const calls: (string | undefined)[] = [];
  const send = async ({ method = "GET" }: ApiRequest) => {
    calls.push(method);
    return { status: 200, body: JSON.stringify(annotated) };
  };
  const metrics = createMetrics();
  const writer = writerBy(send, metrics);
  await expect(writer.create("shop", "{}")).rejects.toThrow(Stale);
  expect(calls).toEqual(["GET"]);
  expect(metrics.registry.text()).not.toMatch(/^linkerd_multus_errors_total\{/m);
});
