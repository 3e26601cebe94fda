import { readText } from "../../host/files";
import type { Host } from "../../host/port";
import type { ApiServer } from "../api-server";
import { loadKubeconfig } from "../kubeconfig";

/** Decodes base64 of either alphabet to text. @throws Error */
export function decodeBase64(host: Host, text: string): string {
  const bytes = host.base64(text.replaceAll(/\s/g, ""));
  if (typeof bytes === "number") throw new Error("it is not base64");
  return host.decode(bytes);
}

/** The API server of a kubeconfig. @throws KubeconfigError */
export function readKubeconfig(host: Host, path: string): ApiServer {
  return loadKubeconfig(path, {
    readText: (file) => readText(host, file),
    parseYaml: (text) => host.load("yaml").parseYaml(text),
    decodeBase64: (text) => decodeBase64(host, text),
  });
}
