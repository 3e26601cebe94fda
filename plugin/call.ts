import type { CallTarget, Environment } from "../cni/environment";
import type { NetworkConfig } from "../cni/network-config";
import type { CniVersion } from "../cni/versions";
import type { Host } from "../host/port";
import type { Recorder } from "./call-log";

/** One call that has passed the checks every verb shares. */
export interface Call {
  readonly host: Host;
  readonly env: Environment;
  readonly target: CallTarget;
  readonly config: NetworkConfig;
  readonly version: CniVersion;
  readonly record: Recorder;
}
