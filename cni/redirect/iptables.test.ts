import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examples } from "./examples.testing";
import { chunkedPorts, removalText, restoreText } from "./iptables";
import { redirectRules } from "./rules";

function expectGolden(name: string, actual: string): void {
  const path = join(__dirname, "goldens", name);
  if (process.env["UPDATE_GOLDENS"] === "1") writeFileSync(path, actual);
  expect(actual).toBe(readFileSync(path, "utf8"));
}

const [usual] = redirectRules(examples.usual);
const fresh = restoreText(usual!, "");

describe("the text of a restore", () => {
  it.each(Object.entries(examples))("of example %s", (name, options) => {
    for (const set of redirectRules(options)) expectGolden(`${name}.${set.family}.restore`, restoreText(set, ""));
  });

  it("does not add an existing jump", () => {
    const jumps = (text: string) => text.split("\n").filter((line) => line.includes("install-proxy-init"));
    expect(jumps(fresh)).toHaveLength(2);
    expect(jumps(restoreText(usual!, fresh))).toEqual([]);
    expect(jumps(restoreText(usual!, jumps(fresh)[0]!))).toEqual([jumps(fresh)[1]]);
  });
});

describe("lists of ports", () => {
  it("fill rules of fifteen slots, a range taking two", () => {
    const range = { low: 1, high: 2 };
    const port = { low: 9, high: 9 };
    expect(chunkedPorts([]).map((chunk) => chunk.length)).toEqual([]);
    expect(chunkedPorts(new Array(31).fill(port)).map((chunk) => chunk.length)).toEqual([15, 15, 1]);
    expect(chunkedPorts(new Array(8).fill(range)).map((chunk) => chunk.length)).toEqual([7, 1]);
    expect(chunkedPorts([...new Array(14).fill(port), range]).map((chunk) => chunk.length)).toEqual([14, 1]);
  });

  it("are several rules if one cannot hold them, each with its own ports in its comment", () => {
    const skipInboundPorts = Array.from({ length: 16 }, (_, index) => ({ low: index + 1, high: index + 1 }));
    const [set] = redirectRules({ ...examples.plain, skipInboundPorts });
    const lines = restoreText(set!, "")
      .split("\n")
      .filter((line) => line.includes("multiport"));
    expect(lines).toHaveLength(2);
    expect(lines[1]).toBe(
      '-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports 16 -m comment --comment "proxy-init/ignore-port-16" -j RETURN',
    );
  });
});

describe("the text of a removal", () => {
  it("removes existing chains and every jump to them", () => {
    const [first, second] = fresh.split("\n").filter((line) => line.includes("install-proxy-init"));
    const saved = `${fresh}-A OUTPUT -j ACCEPT\n${second}\n`;
    expect(removalText(saved).split("\n")).toEqual([
      "*nat",
      first!.replace("-A", "-D"),
      "-F PROXY_INIT_REDIRECT",
      "-X PROXY_INIT_REDIRECT",
      second!.replace("-A", "-D"),
      second!.replace("-A", "-D"),
      "-F PROXY_INIT_OUTPUT",
      "-X PROXY_INIT_OUTPUT",
      "COMMIT",
      "",
    ]);
  });

  it("removes nothing of others", () => {
    expect(removalText("*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -j ACCEPT\nCOMMIT\n")).toBe("*nat\nCOMMIT\n");
  });
});
