import { eventAbout } from "./events";

const regarding = { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web" };
const tiding = { reason: "Reason", action: "Acting", type: "Warning", note: "note" } as const;
const reporter = { controller: "controller", instance: "pod", date: new Date(0) };

const noteOf = (note: string) => eventAbout(regarding, { ...tiding, note }, reporter, "1")["note"] as string;
const nameOf = (name: string) => eventAbout({ ...regarding, name }, tiding, reporter, "123").metadata.name;

test("a note holds as many bytes as the API takes, and whole characters only", () => {
  expect(noteOf("é".repeat(512))).toBe("é".repeat(512));
  expect(noteOf(`x${"é".repeat(512)}`)).toBe(`x${"é".repeat(511)}`);
  expect(noteOf("x".repeat(2_000))).toBe("x".repeat(1_024));
  expect(noteOf(`xyz${"😀".repeat(300)}`)).toBe(`xyz${"😀".repeat(255)}`);
});

test("an Event's name is one that the API takes, however long its object's is", () => {
  expect(nameOf("web")).toBe("web.123");
  expect(nameOf("w".repeat(253))).toBe(`${"w".repeat(249)}.123`);
  // Cut right after what no part of a name may end in.
  expect(nameOf(`${"w".repeat(248)}-rest`)).toBe(`${"w".repeat(248)}.123`);
  expect(nameOf(`${"w".repeat(248)}.rest`)).toBe(`${"w".repeat(248)}.123`);
  expect(nameOf(`${"w".repeat(245)}----rest`)).toBe(`${"w".repeat(245)}.123`);
});
