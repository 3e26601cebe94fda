/** Writes both charts below the given folder. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { App } from "cdk8s";
import { charts } from "./node-readiness";

const [, , folder = "dist"] = process.argv;
for (const [path, text] of charts(new App())) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
