import { type Environment, readTarget } from "../cni/environment";
import { CniError, ErrorCode, errorDocument, reasonOf } from "../cni/errors";
import { type NetworkConfig, parseNetworkConfig } from "../cni/network-config";
import { isVerb, SINCE, type Verb } from "../cni/verbs";
import { atLeast, type CniVersion, CURRENT_VERSION, isSupported, requireSupported, VERSIONS } from "../cni/versions";
import { add } from "./add";
import type { Call, World } from "./call";
import { Recorder } from "./record";

/** What a call prints and leaves with. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 1;
  /** The line for the log of calls. */
  readonly record?: string;
}

const ABOUT = `linkerd-cni: redirects the traffic of meshed pods to their Linkerd proxy
CNI protocol versions supported: ${VERSIONS.join(", ")}
`;

type Handler = (call: Call, world: World) => Promise<string>;

/** Nothing of a pod outlives its namespace, so there is nothing to undo. */
const nothing: Handler = async () => "";

/** What is rarely used is loaded when it is. */
const handlers: Readonly<Record<Exclude<Verb, "VERSION">, Handler>> = {
  ADD: add,
  DEL: nothing,
  CHECK: (call, world) => (require("./check") as typeof import("./check")).check(call, world),
  GC: (call) => (require("./gc") as typeof import("./gc")).gc(call),
  STATUS: (call, world) => (require("./status") as typeof import("./status")).status(call, world),
};

function versions(): string {
  return JSON.stringify({ cniVersion: CURRENT_VERSION, supportedVersions: VERSIONS });
}

/** @throws CniError 5 */
function readInput(readStdin: () => string): string {
  try {
    return readStdin();
  } catch (error) {
    throw new CniError(ErrorCode.io, `cannot read standard input: ${reasonOf(error)}`);
  }
}

/** @throws CniError 4, 1 */
function settleVerb(command: string, config: NetworkConfig): { verb: Exclude<Verb, "VERSION">; version: CniVersion } {
  if (!isVerb(command) || command === "VERSION") {
    throw new CniError(ErrorCode.environment, `CNI_COMMAND ${JSON.stringify(command)} is not a verb of CNI`);
  }
  const version = requireSupported(config.cniVersion, `network ${config.name}`);
  const since = SINCE[command];
  if (since !== undefined && !atLeast(version, since)) {
    throw new CniError(
      ErrorCode.incompatibleVersion,
      `${command} needs CNI version ${since} or later, network ${config.name} has ${version}`,
    );
  }
  return { verb: command, version };
}

/** A call in progress: remembers the caller's version, which an error must carry. */
class Dispatcher {
  private speaks: string = CURRENT_VERSION;
  private readonly record: Recorder;

  constructor(
    private readonly env: Environment,
    private readonly command: string,
    private readonly world: World,
  ) {
    this.record = new Recorder(command, world.elapsed);
  }

  async run(readStdin: () => string): Promise<Outcome> {
    try {
      const stdout = await Promise.race([this.call(readStdin), this.idle()]);
      return { stdout, stderr: "", status: 0, record: this.line() };
    } catch (error) {
      return this.failed(error);
    }
  }

  private async call(readStdin: () => string): Promise<string> {
    const target = readTarget(this.env, this.command);
    const config = parseNetworkConfig(readInput(readStdin));
    if (isSupported(config.cniVersion)) this.speaks = config.cniVersion;
    const { verb, version } = settleVerb(this.command, config);
    return handlers[verb]({ env: this.env, target, config, version, record: this.record }, this.world);
  }

  /** A call without an answer and without anything to wait for: a runtime would take its silence for success. */
  private idle(): Promise<never> {
    return new Promise((_, reject) => this.world.onIdle(() => reject(new Error("the call came to no end"))));
  }

  private failed(error: unknown): Outcome {
    const { code, message, details } =
      error instanceof CniError
        ? error
        : new CniError(ErrorCode.internal, `a defect of linkerd-cni: ${reasonOf(error)}`, stackOf(error));
    this.record.note({ code, error: message });
    const stderr = `linkerd-cni: error: ${message.replaceAll("\n", " ")}\n`;
    return { stdout: errorDocument({ code, message, details }, this.speaks), stderr, status: 1, record: this.line() };
  }

  private line(): string {
    return this.record.line(this.world.now());
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? "") : "";
}

/** Answers one call. Never throws: every failure is a CNI error. */
export async function dispatch(env: Environment, readStdin: () => string, world: World): Promise<Outcome> {
  const command = env["CNI_COMMAND"];
  if (!command) return { stdout: "", stderr: ABOUT, status: 0 };
  if (command === "VERSION") return { stdout: versions(), stderr: "", status: 0 };
  return new Dispatcher(env, command, world).run(readStdin);
}
