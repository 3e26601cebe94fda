import { parseArgs } from "node:util";
import { LOG_FORMATS, type LogFormat } from "../../cni/log";
import { LOG_LEVELS, type LogLevel } from "../../cni/stanza";
import type { InCluster } from "../../kubernetes/in-cluster";
import type { ListenAddress } from "../admin";
import type { Rate } from "../bucket";
import { type Environment, Reader } from "../reader";

/** What the repair controller is told. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly admin: ListenAddress;
  /** Only pods of this node are looked after. */
  readonly nodeName: string;
  /** This pod: who reports an Event. */
  readonly podName: string;
  readonly cluster: InCluster;
  /** Where the node's installer says whether a pod started now would be chained; absent: it is not waited for. */
  readonly installerReady?: string;
  readonly rate: Rate;
  /** Delete pods without redirect that nothing validates, too. */
  readonly deleteUnvalidated: boolean;
  /** The plugin's stanza as JSON; without it nothing is known about what should be redirected, and nothing is audited. */
  readonly stanza?: string;
}

const OPTIONS = {
  "admin-addr": { type: "string", default: ":9990" },
  "log-level": { type: "string", default: "info" },
  "log-format": { type: "string", default: "plain" },
  "installer-ready": { type: "string", default: "http://127.0.0.1:9991/ready" },
  "deletions-per-second": { type: "string", default: "1" },
  "deletion-burst": { type: "string", default: "10" },
  "delete-unvalidated": { type: "string", default: "false" },
} as const;
type Options = { readonly [Name in keyof typeof OPTIONS]: string };

function options(args: readonly string[], read: Reader): Options {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true }).values as Options;
  } catch (error) {
    const known = Object.keys(OPTIONS).map((name) => `--${name}`);
    read.problems.push(`${(error as Error).message}; known are ${known.join(", ")}`);
    return parseArgs({ args: [], options: OPTIONS }).values as Options;
  }
}

/** The installer serves no TLS. */
const isHttp = (url: string): boolean => URL.canParse(url) && new URL(url).protocol === "http:";

/** Reads the command line and the environment. @throws an Error that lists everything that is wrong */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new Reader(environment);
  const given = options(args, read);
  const stanza = environment["CNI_NETWORK_CONFIG"];
  const settings: Settings = {
    logLevel: read.oneOf("log-level", given["log-level"], LOG_LEVELS),
    logFormat: read.oneOf("log-format", given["log-format"], LOG_FORMATS),
    admin: read.address("admin-addr", given["admin-addr"]),
    nodeName: read.required("LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME", "set it from spec.nodeName"),
    podName: read.required("LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME", "set it from metadata.name"),
    cluster: read.cluster(),
    ...(given["installer-ready"] === "" ? {} : { installerReady: given["installer-ready"] }),
    rate: {
      perSecond: read.positive("deletions-per-second", given["deletions-per-second"]),
      burst: Math.max(1, read.positive("deletion-burst", given["deletion-burst"])),
    },
    deleteUnvalidated: read.oneOf("delete-unvalidated", given["delete-unvalidated"], ["false", "true"]) === "true",
    ...(stanza ? { stanza } : {}),
  };
  if (settings.installerReady !== undefined && !isHttp(settings.installerReady)) {
    read.problems.push(
      `--installer-ready "${settings.installerReady}" is not a URL such as http://127.0.0.1:9991/ready`,
    );
  }
  read.finish();
  return settings;
}
