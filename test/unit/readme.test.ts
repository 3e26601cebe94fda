import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SETTING_PREFIX } from "../../cni/contract";
import { SETTINGS } from "../../cni/decide";
import { tooOldForNative, tooOldForPlugin } from "../../cni/kernel";
import { PLATFORMS } from "../../constructs/platforms";

const readme = readFileSync(join(__dirname, "..", "..", "README.md"), "utf8");
const rows = readme.split("\n").filter((line) => line.startsWith("|"));

test.each(Object.keys(SETTINGS))("the annotation %s is in README's table", (name) => {
  const found = rows.filter((row) => row.includes(`\`${SETTING_PREFIX}${name}\``) || row.includes(`\`${name}\``));
  expect(found).toHaveLength(1);
});

test.each(Object.entries(PLATFORMS))("the directories of %s are in README's table", (_, platform) => {
  const directories = `\`${platform.destCNINetDir}\` | \`${platform.destCNIBinDir}\``;
  expect(rows.filter((row) => row.includes(directories))).not.toEqual([]);
});

test("README's kernels are the first that support nf_tables, and the first on which the plugin runs", () => {
  const [, native = "", plugin = ""] =
    /must be (\S+) or later with nf_tables, or (\S+) or later with `iptables-legacy`/.exec(readme) ?? [];
  const before = (version: string) => version.replace(/\d+$/, (minor) => String(Number(minor) - 1));
  expect([tooOldForNative(native), tooOldForPlugin(plugin)]).toEqual([undefined, undefined]);
  expect(tooOldForNative(before(native))).toContain(native);
  expect(tooOldForPlugin(before(plugin))).toContain(plugin);
});
