import { KubernetesClient } from "./client";
import { type EventObject, EventRecorder, eventFor } from "./events";

const regarding = { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web" };
const spec = { reason: "Reason", action: "Acting", type: "Warning", note: "note" } as const;
const reporter = { controller: "controller", instance: "pod", date: new Date(0) };

const noteOf = (note: string) => eventFor(regarding, { ...spec, note }, reporter, "1")["note"] as string;
const nameOf = (name: string) => eventFor({ ...regarding, name }, spec, reporter, "123").metadata.name;

test("a note is truncated to the API's limit in bytes, at a whole character", () => {
  expect(noteOf("é".repeat(512))).toBe("é".repeat(512));
  expect(noteOf(`x${"é".repeat(512)}`)).toBe(`x${"é".repeat(511)}`);
  expect(noteOf("x".repeat(2_000))).toBe("x".repeat(1_024));
  expect(noteOf(`xyz${"😀".repeat(300)}`)).toBe(`xyz${"😀".repeat(255)}`);
});

test("an Event's name is valid, however long its object's is", () => {
  expect(nameOf("web")).toBe("web.123");
  expect(nameOf("w".repeat(253))).toBe(`${"w".repeat(249)}.123`);
  // Truncated right after a character with which a part of a name must not end.
  expect(nameOf(`${"w".repeat(248)}-rest`)).toBe(`${"w".repeat(248)}.123`);
  expect(nameOf(`${"w".repeat(248)}.rest`)).toBe(`${"w".repeat(248)}.123`);
  expect(nameOf(`${"w".repeat(245)}----rest`)).toBe(`${"w".repeat(245)}.123`);
});

test("a recorder publishes an Event once for each cause", async () => {
  const names: string[] = [];
  const client = new KubernetesClient(async ({ path, body }) => {
    expect(path).toBe("/apis/events.k8s.io/v1/namespaces/shop/events");
    const { name = "" } = (body as EventObject).metadata ?? {};
    const known = names.includes(name);
    if (!known) names.push(name);
    return known ? { status: 409, body: '{"reason":"AlreadyExists"}' } : { status: 201, body: "{}" };
  });
  const recorder = new EventRecorder(
    { controller: "c", instance: "i" },
    { client, clock: { date: () => new Date(16) } },
  );
  await recorder.record(regarding, spec);
  await recorder.record(regarding, spec);
  await recorder.record(regarding, spec, "once");
  await recorder.record(regarding, spec, "once");
  expect(names).toEqual(["web.101", "web.102", "web.once"]);
});

test("an instance's name is truncated to the API's limit", () => {
  const event = eventFor(regarding, spec, { ...reporter, instance: "é".repeat(100) }, "1");
  expect(event.reportingInstance).toBe("é".repeat(64));
});

test("a note shows control characters", () => {
  expect(noteOf("a\u009b2Jb\u202ec\n")).toBe("a\\u009b2Jb\\u202ec\n");
});
