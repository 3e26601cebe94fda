import { REPAIR_PORT, RepairFlag, RepairVariable } from "../../cni/contract";
import { LOG_LEVELS } from "../../cni/stanza";
import { readInCluster } from "../../kubernetes/in-cluster";
import { LOG_FORMATS } from "../../process/log";
import { type Environment, SettingsReader } from "../../process/settings";

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
export function readSettings(args: readonly string[], environment: Environment) {
  const read = new SettingsReader({ environment, args, flags: FLAGS });
  const installerReady = read.flag(RepairFlag.installerReady);
  const settings = {
    logLevel: read.flag(RepairFlag.logLevel).oneOf(LOG_LEVELS),
    logFormat: read.flag(RepairFlag.logFormat).oneOf(LOG_FORMATS),
    admin: read.flag(RepairFlag.adminAddress).address(),
    /** Only pods of this node are tracked. */
    nodeName: read.required(RepairVariable.nodeName, "set it from spec.nodeName"),
    /** This pod, which reports the Events. */
    podName: read.required(RepairVariable.podName, "set it from metadata.name"),
    cluster: readInCluster(read),
    /** URL of the node's installer that reports whether new pods get the plugin; undefined: do not wait for it. */
    installerReady: installerReady.value === "" ? undefined : installerReady.httpUrl(),
    /** Rate limit of deletions. */
    rate: {
      perSecond: read.flag(RepairFlag.deletionsPerSecond).positive(),
      burst: Math.max(1, read.flag(RepairFlag.deletionBurst).positive()),
    },
    /** Also delete broken pods that no controller replaces. */
    deleteUnowned: read.flag(RepairFlag.deleteUnowned).boolean(),
    /** Wait for the NRI plugin, which may set a pod's redirect in place, before deleting the pod. */
    waitForNri: read.flag(RepairFlag.waitForNri).boolean(),
    /** The plugin's stanza as JSON; without it the expected redirect is unknown, and pods are not audited. */
    stanza: read.optional(RepairVariable.stanza),
  } as const;
  read.finish();
  return settings;
}

/** Settings of the repair controller. */
export type Settings = ReturnType<typeof readSettings>;
