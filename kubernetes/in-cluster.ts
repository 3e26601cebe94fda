import { readFileSync } from "node:fs";
import { ApiServerVariable, SERVICE_ACCOUNT_DIR } from "../cni/contract";
import type { SettingsReader } from "../process/settings";
import { join } from "../system/path";
import { type ApiServer, withoutBlanks } from "./api-server";

/** The sources of a pod's API server address and identity. */
export interface InCluster {
  /** KUBERNETES_SERVICE_HOST: a name or an address, IPv6 without brackets. */
  readonly host: string;
  /** KUBERNETES_SERVICE_PORT. */
  readonly port: number;
  /** Directory with `token` and `ca.crt`. */
  readonly serviceAccountDir: string;
  /** File that replaces `ca.crt`. */
  readonly caFile?: string | undefined;
}

/** Reads the API server's address that the kubelet sets in a pod. */
export function readInCluster(read: SettingsReader): InCluster {
  const host = read.required(ApiServerVariable.host, "outside a pod, set it to the API server's address");
  return {
    host: host === "" ? "" : read.setting(ApiServerVariable.host, host).host(),
    port: read.env(ApiServerVariable.port, "443").port(),
    serviceAccountDir: read.env(ApiServerVariable.serviceAccountDir, SERVICE_ACCOUNT_DIR).absolutePath(),
    caFile: read.optional(ApiServerVariable.caFile),
  };
}

/** Reads token and certificate authority, which both rotate. @throws if a file is missing or empty */
export function readApiServer(cluster: InCluster): ApiServer {
  return {
    host: cluster.host,
    port: cluster.port,
    token: readRequired(join(cluster.serviceAccountDir, "token"), "service account token").trim(),
    ca: withoutBlanks(
      readRequired(cluster.caFile ?? join(cluster.serviceAccountDir, "ca.crt"), "certificate authority"),
    ),
  };
}

function readRequired(path: string, what: string): string {
  const text = readIfAny(path);
  if (text.trim() === "") {
    throw new Error(`${what} ${path} is missing or empty: mount a service account (automountServiceAccountToken)`);
  }
  return text;
}

function readIfAny(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
