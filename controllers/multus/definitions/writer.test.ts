import { createLog } from "../../../cni/log";
import type { ApiRequest } from "../../../kubernetes/client";
import { systemClock } from "../../clock";
import { createInstruments } from "../instruments";
import { OWNER, OWNER_LABEL } from "./definition";
import { Stale, Writer } from "./writer";

/** A definition of the operator's own, to which somebody has written as well. */
const annotated = {
  metadata: {
    ...{ name: "linkerd-cni", uid: "one", labels: { [OWNER_LABEL]: OWNER }, annotations: { seen: "1" } },
    managedFields: [{ manager: OWNER }, { manager: "team-a" }],
  },
  spec: { config: "{}" },
};

test("who leads no more by the answer to its question writes nothing", async () => {
  const calls: (string | undefined)[] = [];
  const send = async ({ method = "GET" }: ApiRequest) => {
    calls.push(method);
    return { status: 404, body: "{}" };
  };
  const log = createLog("error", "plain", () => undefined);
  const writer = new Writer({ send, clock: systemClock, log, instruments: createInstruments(), reporter: "one" });
  await expect(writer.create("shop", "{}", () => false)).rejects.toThrow("not to be written any more");
  expect(calls).toEqual(["GET"]);
});

test("what the watch has not told yet is left as it is, whoever has written to it", async () => {
  const calls: (string | undefined)[] = [];
  const send = async ({ method = "GET" }: ApiRequest) => {
    calls.push(method);
    return { status: 200, body: JSON.stringify(annotated) };
  };
  const log = createLog("error", "plain", () => undefined);
  const instruments = createInstruments();
  const writer = new Writer({ send, clock: systemClock, log, instruments, reporter: "one" });
  await expect(writer.create("shop", "{}")).rejects.toThrow(Stale);
  expect(calls).toEqual(["GET"]);
  expect(await instruments.registry.metrics()).not.toMatch(/^linkerd_multus_errors_total\{/m);
});
