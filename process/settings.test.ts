import { SettingsReader } from "./settings";

const flags = { "log-level": "info", "leader-elect": true as boolean, "admin-addr": ":9990" };
const reader = (...args: string[]) => new SettingsReader({ environment: { A: "a", EMPTY: "" }, args, flags });

test("a variable that is empty counts as one that is not set", () => {
  const read = reader();
  expect([read.optional("A"), read.optional("EMPTY"), read.optional("NONE")]).toEqual(["a", undefined, undefined]);
  expect([read.env("A", "b").value, read.env("EMPTY", "b").value]).toEqual(["a", "b"]);
  expect(read.required("A", "set it")).toBe("a");
  expect(() => read.finish()).not.toThrow();
});

describe("every form of a flag", () => {
  test.each([
    [["-log-level", "debug"]],
    [["--log-level", "debug"]],
    [["-log-level=debug"]],
    [["--log-level=debug"]],
    [["-log-level", "warn", "--log-level=debug"]],
  ])("%j", (args) => {
    const read = reader(...args);
    expect(read.flag("log-level").value).toBe("debug");
    expect(read.problems).toEqual([]);
  });

  test.each([
    [["-leader-elect"], true],
    [["--leader-elect"], true],
    [["-leader-elect=false"], false],
    [["--leader-elect=F"], false],
    [["-leader-elect", "false"], false],
    [["-leader-elect", "true"], true],
  ])("%j", (args, wanted) => {
    const read = reader(...args, "-log-level=debug");
    expect([read.flag("leader-elect").boolean(), read.flag("log-level").value]).toEqual([wanted, "debug"]);
    expect(read.problems).toEqual([]);
  });

  test("a value may hold an equals sign, or begin with a dash", () => {
    expect(reader("-log-level=a=b").flag("log-level").value).toBe("a=b");
    expect(reader("--log-level", "-5").flag("log-level").value).toBe("-5");
  });
});

test.each([
  [["--nonsense", "value"], "--nonsense is not known; known are --log-level, --leader-elect, --admin-addr"],
  [["-toString=x"], "--toString is not known; known are "],
  [["--log-level"], "--log-level has no value: write --log-level=VALUE"],
  [["word"], '"word" is not a flag: flags are --name value or --name=value'],
  [["--"], '"--" is not a flag: flags are --name value or --name=value'],
  [["-"], '"-" is not a flag: flags are --name value or --name=value'],
])("%j is refused", (args, problem) => {
  const read = reader(...args);
  expect(read.problems).toEqual([expect.stringContaining(problem)]);
});

test("a value is read, or refused by its name", () => {
  const read = reader();
  const setting = (value: string) => read.setting("S", value);
  expect(setting("b").oneOf(["a", "b"])).toBe("b");
  expect([setting("T").boolean(), setting("0").boolean()]).toEqual([true, false]);
  expect([setting("7").integer(), setting("600").integer([600, 700])]).toEqual([7, 600]);
  expect(setting("0.5").positive()).toBe(0.5);
  expect(setting("65535").port()).toBe(65_535);
  expect(setting(":1").address()).toEqual({ port: 1 });
  expect(setting("localhost:1").address()).toEqual({ host: "localhost", port: 1 });
  expect(setting("[::1]:1").address()).toEqual({ host: "::1", port: 1 });
  expect([setting("/a//").absolutePath(), setting("/").absolutePath()]).toEqual(["/a", "/"]);
  expect(setting("http://127.0.0.1:1/a").httpUrl()).toBe("http://127.0.0.1:1/a");
  expect(setting("ab").matching({ pattern: /^a/, what: "an a" })).toBe("ab");
  expect(read.problems).toEqual([]);

  setting("c").oneOf(["a", "b"]);
  setting("maybe").boolean();
  setting("-1").integer();
  setting("701").integer([600, 700]);
  setting("0").positive();
  setting("65536").port();
  setting("::1:1").address();
  setting(":0").address();
  setting("a").absolutePath();
  setting("https://a/").httpUrl();
  setting('"').matching({ pattern: /^a/, what: "an a" });
  expect(read.problems).toEqual([
    'S "c" is not one of a, b',
    'S "maybe" is not true or false',
    'S "-1" is not a whole number from 0',
    'S "701" is not a whole number from 600 to 700',
    'S "0" is not a number above 0',
    'S "65536" is not a port',
    'S "::1:1" is not HOST:PORT or :PORT',
    'S ":0" is not HOST:PORT or :PORT',
    'S "a" is not an absolute path',
    'S "https://a/" is not a URL such as http://127.0.0.1:9991/ready',
    'S "\\"" is not an a',
  ]);
});

test("everything that is wrong is reported at once", () => {
  const read = reader("--nonsense", "value", "--log-level=loud");
  read.flag("log-level").oneOf(["info"]);
  read.required("NONE", "set it from metadata.name");
  expect(() => read.finish()).toThrow(
    /^--nonsense is not known; .*; --log-level "loud" .*; NONE is not set: set it from metadata.name$/,
  );
});
