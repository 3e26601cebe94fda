import { createLog } from "./log";

function lines(format: "plain" | "json"): { log: ReturnType<typeof createLog>; written: string[] } {
  const written: string[] = [];
  const log = createLog("info", format, (line) => written.push(line), "linkerd-multus");
  return { log, written };
}

test("a plain line stays one line, and its fields can be told apart", () => {
  const { log, written } = lines("plain");
  log.debug("unseen");
  log.warn("two\nlines", { namespace: "shop", problem: 'a "word" or two', attempts: 2 });
  expect(written).toEqual([
    'linkerd-multus: warn: two\\nlines namespace=shop problem="a \\"word\\" or two" attempts=2\n',
  ]);
});

test("a JSON line holds the fields beside the message", () => {
  const { log, written } = lines("json");
  log.info("applied", { namespace: "shop" });
  expect(JSON.parse(written.join(""))).toEqual({
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    level: "info",
    logger: "linkerd-multus",
    message: "applied",
    namespace: "shop",
  });
});

test.each(["plain", "json"] as const)("a %s line shows what a terminal would not", (format) => {
  const { log, written } = lines(format);
  log.info("a\u009b2Jb\u202ec", { value: "\u2028" });
  const line = format === "json" ? JSON.stringify(Object.values(JSON.parse(written.join("")))) : written.join("");
  expect(written.join("")).not.toMatch(/[\u007f-\u009f\u202e\u2028]/);
  expect(line.replaceAll("\\\\", "\\")).toMatch(/a\\u009b2Jb\\u202ec.*\\u2028/);
});
