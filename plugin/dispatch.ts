import { type Environment, readTarget } from "../cni/environment";
import { CniError, ErrorCode, errorDocument, reasonOf } from "../cni/errors";
import { type NetworkConfig, parseNetworkConfig } from "../cni/network-config";
import { isVerb, SINCE, type Verb } from "../cni/verbs";
import { atLeast, type CniVersion, CURRENT_VERSION, isSupported, requireSupported, VERSIONS } from "../cni/versions";
import { add } from "./add";
import type { Call, World } from "./call";

/** What a call prints and leaves with. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 1;
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

  constructor(
    private readonly env: Environment,
    private readonly world: World,
  ) {}

  async run(command: string, readStdin: () => string): Promise<Outcome> {
    try {
      if (command === "VERSION") return { stdout: versions(), stderr: "", status: 0 };
      return { stdout: await this.call(command, readStdin), stderr: "", status: 0 };
    } catch (error) {
      const failure =
        error instanceof CniError
          ? error
          : new CniError(ErrorCode.internal, `a defect of linkerd-cni: ${reasonOf(error)}`);
      const stderr = `linkerd-cni: error: ${failure.message.replaceAll("\n", " ")}\n`;
      return { stdout: errorDocument(failure, this.speaks), stderr, status: 1 };
    }
  }

  private async call(command: string, readStdin: () => string): Promise<string> {
    const target = readTarget(this.env, command);
    const config = parseNetworkConfig(readInput(readStdin));
    if (isSupported(config.cniVersion)) this.speaks = config.cniVersion;
    const { verb, version } = settleVerb(command, config);
    return handlers[verb]({ env: this.env, target, config, version }, this.world);
  }
}

/** Answers one call. Never throws: every failure is a CNI error. */
export async function dispatch(env: Environment, readStdin: () => string, world: World): Promise<Outcome> {
  const command = env["CNI_COMMAND"];
  if (!command) return { stdout: "", stderr: ABOUT, status: 0 };
  return new Dispatcher(env, world).run(command, readStdin);
}
