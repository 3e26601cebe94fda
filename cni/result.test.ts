import { parseNetworkConfig } from "./network-config";
import { previousResult, resultText } from "./result";

const pass = (prevResult: unknown, version: "0.4.0" | "1.0.0") =>
  resultText(parseNetworkConfig(JSON.stringify({ cniVersion: version, name: "pods", prevResult })), version);

describe("a previous result", () => {
  const given = {
    dns: {},
    cniVersion: "1.0.0",
    ips: [{ gateway: "10.0.0.1", address: "10.0.0.2/24" }],
    extra: [1, null],
  };

  it("keeps its members and their order", () => {
    expect(pass(given, "1.0.0")).toBe(JSON.stringify(given));
  });

  it("gets the configuration's version", () => {
    for (const { cniVersion: _, ...rest } of [given, { ...given, cniVersion: "" }]) {
      expect(JSON.parse(pass(rest, "0.4.0"))).toEqual({ ...rest, cniVersion: "0.4.0" });
    }
    expect(JSON.parse(pass(given, "0.4.0"))).toEqual({ ...given, cniVersion: "0.4.0" });
  });

  it("may be absent", () => {
    for (const none of [undefined, null]) {
      expect(previousResult({ prevResult: none })).toBeUndefined();
      expect(pass(none, "1.0.0")).toBe('{"cniVersion":"1.0.0"}');
    }
  });

  it("is refused if it is not an object", () => {
    expect(() => previousResult({ prevResult: [] })).toThrow(/prevResult/);
  });
});
