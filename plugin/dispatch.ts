import { NodePath } from "../cni/contract";
import { type Environment, readTarget } from "../cni/environment";
import { CniError, ErrorCode, errorDocument, quoted, reasonOf, shortened } from "../cni/errors";
import { refuse } from "../cni/json";
import { type NetworkConfig, parseNetworkConfig } from "../cni/network-config";
import { isVerb, SINCE, VARIABLES, type Verb } from "../cni/verbs";
import { atLeast, type CniVersion, CURRENT_VERSION, isSupported, requireSupported, VERSIONS } from "../cni/versions";
import { Recorder } from "../host/call-log";
import { readAll } from "../host/files";
import type { Host } from "../host/port";
import { add } from "./add";
import type { Call } from "./call";
import { check } from "./check";
import { del } from "./del";
import { logLine } from "./log";
import { openTarget } from "./namespace";
import { status } from "./status";

/** The output of a call, and its exit status. */
interface CallOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 1;
  /** The line for the log of calls. */
  readonly record?: string;
  /** The directory of this log. */
  readonly runDir: string;
}

const ABOUT = `linkerd-cni: redirects the traffic of meshed pods to their Linkerd proxy
CNI protocol versions supported: ${VERSIONS.join(", ")}
`;

const STDIN = 0;

type Handler = (call: Call) => string;

const VALID_ATTACHMENTS = "cni.dev/valid-attachments";

/**
 * Rules end with the pod's network namespace, so there is nothing to collect. The request must still be well-formed.
 */
function gc({ config }: Call): string {
  const valid = config.source[VALID_ATTACHMENTS];
  if (valid === undefined) throw new CniError(ErrorCode.config, `GC needs ${VALID_ATTACHMENTS}`);
  if (valid !== null && !Array.isArray(valid)) refuse(VALID_ATTACHMENTS, valid, "a list");
  return "";
}

/** The handler of each verb, and whether it enters a pod's network namespace. */
const handlers: Readonly<
  Record<Exclude<Verb, "VERSION">, { readonly handle: Handler; readonly entersNamespace?: true }>
> = {
  ADD: { handle: add, entersNamespace: true },
  DEL: { handle: del },
  CHECK: { handle: check, entersNamespace: true },
  GC: { handle: gc },
  STATUS: { handle: status },
};

function versions(): string {
  return JSON.stringify({ cniVersion: CURRENT_VERSION, supportedVersions: VERSIONS });
}

/** @throws CniError 5 */
function readInput(host: Host): string {
  try {
    return readAll(host, STDIN);
  } catch (error) {
    throw new CniError(ErrorCode.io, `cannot read standard input: ${reasonOf(error)}`);
  }
}

/** @throws CniError 4, 1 */
function requireVerb(command: string, config: NetworkConfig): { verb: Exclude<Verb, "VERSION">; version: CniVersion } {
  if (!isVerb(command) || command === "VERSION") {
    throw new CniError(ErrorCode.environment, `CNI_COMMAND ${quoted(command)} is not a verb of CNI`);
  }
  const version = requireSupported(config.cniVersion, `network ${shortened(config.name)}`);
  const since = SINCE[command];
  if (since !== undefined && !atLeast(version, since)) {
    throw new CniError(
      ErrorCode.incompatibleVersion,
      `${command} needs CNI version ${since} or later, network ${shortened(config.name)} has ${version}`,
    );
  }
  return { verb: command, version };
}

function readEnvironment(host: Host): Environment {
  return Object.fromEntries([...VARIABLES, "CNI_ARGS"].map((name) => [name, host.env(name)]));
}

function defect(thrown: unknown): CniError {
  if (thrown === null || thrown === undefined) return new CniError(ErrorCode.internal, reasonOf(thrown));
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : "";
  return new CniError(ErrorCode.internal, `a defect of linkerd-cni: ${reasonOf(thrown)}`, stack);
}

/** Answers one call. Never throws: every failure is a CNI error. */
export function dispatch(host: Host): CallOutput {
  const command = host.env("CNI_COMMAND");
  let runDir: string = NodePath.runDir;
  if (!command) return { stdout: "", stderr: ABOUT, status: 0, runDir };
  if (command === "VERSION") return { stdout: versions(), stderr: "", status: 0, runDir };
  const record = new Recorder(command, () => host.elapsed());
  // An error document has the caller's version, once it is known.
  let callerVersion: string = CURRENT_VERSION;
  try {
    const env = readEnvironment(host);
    const target = readTarget(env, command);
    const config = parseNetworkConfig(readInput(host));
    runDir = config.runDir;
    if (isSupported(config.cniVersion)) callerVersion = config.cniVersion;
    const { verb, version } = requireVerb(command, config);
    const { handle, entersNamespace } = handlers[verb];
    const namespace = entersNamespace ? openTarget(host, target.netns) : -1;
    const stdout = handle({ host, env, target, namespace, config, version, record });
    return { stdout, stderr: "", status: 0, record: record.line(), runDir };
  } catch (error) {
    const { code, message, details } = error instanceof CniError ? error : defect(error);
    record.note({ code, error: message });
    return {
      stdout: errorDocument({ code, message, details }, callerVersion),
      stderr: logLine("error", message),
      status: 1,
      record: record.line(),
      runDir,
    };
  }
}
