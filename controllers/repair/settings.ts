import { REPAIR_PORT, RepairFlag, RepairVariable } from "../../cni/contract";
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
  /** Only pods of this node are tracked. */
  readonly nodeName: string;
  /** This pod, which reports the Events. */
  readonly podName: string;
  readonly cluster: InCluster;
  /**
   * URL of the node's installer that reports whether new pods get the plugin; undefined: do not wait for the installer.
   */
  readonly installerReady?: string;
  /** Rate limit of deletions. */
  readonly rate: Rate;
  /** Also delete broken pods that no controller replaces. */
  readonly deleteUnowned: boolean;
  /** Wait for the NRI plugin, which may set a pod's redirect in place, before deleting the pod. */
  readonly waitForNri: boolean;
  /** The plugin's stanza as JSON; without it the expected redirect is unknown, and pods are not audited. */
  readonly stanza?: string;
}

const FLAGS = {
  [RepairFlag.adminAddress]: `:${REPAIR_PORT}`,
  [RepairFlag.logLevel]: "info",
  [RepairFlag.logFormat]: "plain",
  [RepairFlag.installerReady]: "http://127.0.0.1:9991/ready",
  [RepairFlag.deletionsPerSecond]: "1",
  [RepairFlag.deletionBurst]: "10",
  [RepairFlag.deleteUnowned]: false,
  [RepairFlag.waitForNri]: false,
} as const;

/** Reads the command line and the environment. @throws an Error that lists all problems */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new SettingsReader({ environment, args, flags: FLAGS });
  const installerReady = read.flag(RepairFlag.installerReady);
  const stanza = read.optional(RepairVariable.stanza);
  const settings: Settings = {
    logLevel: read.flag(RepairFlag.logLevel).oneOf(LOG_LEVELS),
    logFormat: read.flag(RepairFlag.logFormat).oneOf(LOG_FORMATS),
    admin: read.flag(RepairFlag.adminAddress).address(),
    nodeName: read.required(RepairVariable.nodeName, "set it from spec.nodeName"),
    podName: read.required(RepairVariable.podName, "set it from metadata.name"),
    cluster: readInCluster(read),
    ...(installerReady.value === "" ? {} : { installerReady: installerReady.httpUrl() }),
    rate: {
      perSecond: read.flag(RepairFlag.deletionsPerSecond).positive(),
      burst: Math.max(1, read.flag(RepairFlag.deletionBurst).positive()),
    },
    deleteUnowned: read.flag(RepairFlag.deleteUnowned).boolean(),
    waitForNri: read.flag(RepairFlag.waitForNri).boolean(),
    ...(stanza === undefined ? {} : { stanza }),
  };
  read.finish();
  return settings;
}
