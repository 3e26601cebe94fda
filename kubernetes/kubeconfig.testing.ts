import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { KubeconfigSource } from "./kubeconfig";

/** Reads by Node and its library. */
export const kubeconfigSource: KubeconfigSource = {
  readText: (path) => readFileSync(path, "utf8"),
  parseYaml: parse,
  decodeBase64: (text) => Buffer.from(text, "base64").toString("utf8"),
};
