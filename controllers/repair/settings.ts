import { LOG_LEVELS, type LogLevel } from "../../cni/stanza";
import { type InCluster, readInCluster } from "../../kubernetes/in-cluster";
import type { Rate } from "../../kubernetes/rate-limiter";
import type { ListenAddress } from "../../process/http-server";
import { LOG_FORMATS, type LogFormat } from "../../process/log";
import { type Environment, SettingsReader } from "../../process/settings";

/** Settings of the repair controller. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly admin: ListenAddress;
  /** Only pods of this node are looked after. */
  readonly nodeName: string;
  /** This pod, which reports the Events. */
  readonly podName: string;
  readonly cluster: InCluster;
  /** Where the node's installer says whether new pods get the plugin; undefined: do not wait for the installer. */
  readonly installerReady?: string;
  /** How many pods may be deleted. */
  readonly rate: Rate;
  /** Evict pods without redirect that have no validator, too. */
  readonly deleteUnvalidated: boolean;
  /** The plugin's stanza as JSON; without it nobody knows what should be redirected, and nothing is audited. */
  readonly stanza?: string;
}

const FLAGS = {
  "admin-addr": ":9990",
  "log-level": "info",
  "log-format": "plain",
  "installer-ready": "http://127.0.0.1:9991/ready",
  "deletions-per-second": "1",
  "deletion-burst": "10",
  "delete-unvalidated": false,
} as const;

/** Reads the command line and the environment. @throws an Error that lists everything that is wrong */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new SettingsReader({ environment, args, flags: FLAGS });
  const installerReady = read.flag("installer-ready");
  const stanza = read.optional("CNI_NETWORK_CONFIG");
  const settings: Settings = {
    logLevel: read.flag("log-level").oneOf(LOG_LEVELS),
    logFormat: read.flag("log-format").oneOf(LOG_FORMATS),
    admin: read.flag("admin-addr").address(),
    nodeName: read.required("LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME", "set it from spec.nodeName"),
    podName: read.required("LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME", "set it from metadata.name"),
    cluster: readInCluster(read),
    ...(installerReady.value === "" ? {} : { installerReady: installerReady.httpUrl() }),
    rate: {
      perSecond: read.flag("deletions-per-second").positive(),
      burst: Math.max(1, read.flag("deletion-burst").positive()),
    },
    deleteUnvalidated: read.flag("delete-unvalidated").boolean(),
    ...(stanza === undefined ? {} : { stanza }),
  };
  read.finish();
  return settings;
}
