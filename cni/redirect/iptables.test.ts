import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examples } from "./examples.testing";
import { removalText, restoreText } from "./iptables";
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

  it("adds no jump that is there already", () => {
    const jumps = (text: string) => text.split("\n").filter((line) => line.includes("install-proxy-init"));
    expect(jumps(fresh)).toHaveLength(2);
    expect(jumps(restoreText(usual!, fresh))).toEqual([]);
    expect(jumps(restoreText(usual!, jumps(fresh)[0]!))).toEqual([jumps(fresh)[1]]);
  });
});

describe("the text of a removal", () => {
  it("takes away the chains that are there, and every jump to them", () => {
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

  it("takes away nothing of others'", () => {
    expect(removalText("*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -j ACCEPT\nCOMMIT\n")).toBe("*nat\nCOMMIT\n");
  });
});
