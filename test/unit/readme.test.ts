import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SETTING_PREFIX } from "../../cni/contract";
import { SETTINGS } from "../../cni/decide";
import { PLATFORMS } from "../../constructs/platforms";

const rows = readFileSync(join(__dirname, "..", "..", "README.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|"));

test.each(SETTINGS)("the annotation %s is in README's table", (name) => {
  const found = rows.filter((row) => row.includes(`\`${SETTING_PREFIX}${name}\``) || row.includes(`\`${name}\``));
  expect(found).toHaveLength(1);
});

test.each(Object.entries(PLATFORMS))("the directories of %s are in README's table", (_, platform) => {
  const directories = `\`${platform.destCNINetDir}\` | \`${platform.destCNIBinDir}\``;
  expect(rows.filter((row) => row.includes(directories))).not.toEqual([]);
});
