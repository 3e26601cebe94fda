import { parseArgs } from "node:util";
import { LOG_FORMATS, type LogFormat } from "../../cni/log";
import { LOG_LEVELS, type LogLevel } from "../../cni/stanza";
import type { InCluster } from "../../kubernetes/in-cluster";
import type { ListenAddress } from "../admin";
import type { Rate } from "./bucket";

type Environment = Readonly<Record<string, string | undefined>>;

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
  /** Where the node's installer says whether a pod started now would be chained. */
  readonly installerReady: string;
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

const ADDRESS = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]*)):(?<port>\d{1,5})$/;
const MAX_PORT = 65535;

/** Collects what is wrong, so that it is said all at once. */
class Reader {
  readonly problems: string[] = [];

  constructor(private readonly environment: Environment) {}

  required(name: string, remedy: string): string {
    const value = this.environment[name] ?? "";
    if (value === "") this.problems.push(`${name} is not set: ${remedy}`);
    return value;
  }

  oneOf<T extends string>(option: string, value: string, known: readonly T[]): T {
    const found = known.find((each) => each === value);
    if (found === undefined) this.problems.push(`--${option} "${value}" is not one of ${known.join(", ")}`);
    return found ?? (known[0] as T);
  }

  positive(option: string, value: string): number {
    const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : 0;
    if (number <= 0) this.problems.push(`--${option} "${value}" is not a number above 0`);
    return number;
  }

  port(name: string, value: string): number {
    const port = /^\d{1,5}$/.test(value) ? Number(value) : 0;
    if (port < 1 || port > MAX_PORT) this.problems.push(`${name} "${value}" is not a port`);
    return port;
  }

  address(option: string, value: string): ListenAddress {
    const { v6, name, port = "" } = ADDRESS.exec(value)?.groups ?? {};
    const host = v6 ?? (name === "" ? undefined : name);
    const listen = { port: this.port(`--${option}, HOST:PORT or :PORT,`, port === "" ? value : port) };
    return host === undefined ? listen : { ...listen, host };
  }
}

function options(args: readonly string[], read: Reader): Options {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true }).values as Options;
  } catch (error) {
    const known = Object.keys(OPTIONS).map((name) => `--${name}`);
    read.problems.push(`${(error as Error).message}; known are ${known.join(", ")}`);
    return parseArgs({ args: [], options: OPTIONS }).values as Options;
  }
}

function cluster(read: Reader, environment: Environment): InCluster {
  const host = read.required("KUBERNETES_SERVICE_HOST", "outside a pod, set it to the API server's address");
  const directory = environment["SERVICE_ACCOUNT_DIR"] || "/var/run/secrets/kubernetes.io/serviceaccount";
  return {
    host: host.replace(/^\[|\]$/g, ""),
    port: read.port("KUBERNETES_SERVICE_PORT", environment["KUBERNETES_SERVICE_PORT"] || "443"),
    serviceAccountDir: directory,
  };
}

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
    cluster: cluster(read, environment),
    installerReady: given["installer-ready"],
    rate: {
      perSecond: read.positive("deletions-per-second", given["deletions-per-second"]),
      burst: Math.max(1, read.positive("deletion-burst", given["deletion-burst"])),
    },
    deleteUnvalidated: read.oneOf("delete-unvalidated", given["delete-unvalidated"], ["false", "true"]) === "true",
    ...(stanza ? { stanza } : {}),
  };
  if (!URL.canParse(settings.installerReady)) {
    read.problems.push(
      `--installer-ready "${settings.installerReady}" is not a URL such as http://127.0.0.1:9991/ready`,
    );
  }
  if (read.problems.length > 0) throw new Error(read.problems.join("; "));
  return settings;
}
