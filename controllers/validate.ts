import { InstallerVariable, PodVariable } from "../cni/contract";
import { decide } from "../cni/decide";
import { reasonOf } from "../cni/errors";
import { type Pod, PROXY } from "../cni/pod";
import type { RedirectOptions } from "../cni/redirect/options";
import type { Stanza } from "../cni/stanza";
import { FAMILIES, type Family } from "../cni/subnets";
import type { Log } from "../process/log";
import { type Environment, SettingsReader } from "../process/settings";
import { randomUUID } from "../system/crypto";
import { Gathered } from "../system/http/message";
import { connectTcp, type Listener, listenTcp } from "../system/net";
import type { NetError } from "../system/net-error";
import { stanzaFromText } from "./stanza";

/** Reads the environment; the program has no flags. @throws an Error that lists all problems */
export function readSettings(args: readonly string[], environment: Environment) {
  const read = new SettingsReader({ environment, args, flags: {} });
  const settings = {
    logLevel: "info",
    logFormat: "plain",
    nodeName: read.required(PodVariable.nodeName, "set it from spec.nodeName"),
    namespace: read.required(PodVariable.podNamespace, "set it from metadata.namespace"),
    /** This pod's addresses. */
    addresses: read.required(PodVariable.podIps, "set it from status.podIPs").split(","),
    /** The plugin's stanza as JSON. */
    stanza: read.required(InstallerVariable.stanza, "set it from the ConfigMap"),
  } as const;
  read.finish();
  return settings;
}

/** Settings of the validator. */
type Settings = ReturnType<typeof readSettings>;

/** A connection that is redirected, if the plugin has handled this pod. */
interface Target {
  readonly host: string;
  readonly port: number;
}

/** The connections to try. */
interface ValidationPlan {
  /** The proxy's port at which every connection must arrive. */
  readonly proxyPort: number;
  readonly targets: readonly Target[];
}

/** Documentation addresses (RFC 5737 and RFC 3849), which hosts do not have. */
const UNUSED_ADDRESS: Readonly<Record<Family, string>> = { ip: "192.0.2.1", ip6: "2001:db8::1" };
/** Rarely used. */
const FIRST_PORT = 64_321;

/** A meshed pod without settings. */
const MESHED: Pod = { namespace: "", name: "", annotations: {}, labels: {}, containers: [PROXY], initContainers: [] };

/** A port to which connections are redirected. */
function redirectedPort({ skipOutboundPorts }: RedirectOptions): number {
  const isSkipped = (port: number) => skipOutboundPorts.some(({ low, high }) => low <= port && port <= high);
  let port = FIRST_PORT;
  while (port > 0 && isSkipped(port)) port -= 1;
  if (port === 0) throw new Error(`ignoreOutboundPorts: no port up to ${FIRST_PORT} is redirected`);
  return port;
}

/**
 * The connections to try in a meshed pod with these addresses, one for each redirected family. Pure. @throws an Error
 * that says why nothing is redirected
 */
export function planValidation(stanza: Stanza, addresses: readonly string[]): ValidationPlan {
  const decision = decide(MESHED, {}, stanza);
  if (decision.kind === "skip") throw new Error(`the plugin leaves meshed pods alone: ${decision.reason}`);
  const { options } = decision;
  const own = new Set(addresses.map((address): Family => (address.includes(":") ? "ip6" : "ip")));
  const families = FAMILIES.filter((family) => own.has(family) && (family === "ip" || options.ipv6));
  if (families.length === 0) throw new Error("disableIPv6: this pod has no IPv4 address, so nothing is redirected");
  const port = redirectedPort(options);
  return {
    proxyPort: options.outboundPort,
    targets: families.map((family) => ({ host: UNUSED_ADDRESS[family], port })),
  };
}

/** The client sends something first: a listener serves no connection that is silent. */
const QUESTION = new TextEncoder().encode("\n");

/** Answers every connection to a port with a text. @throws if the port is in use */
function answering(port: number, text: string): Promise<Listener> {
  const bytes = new TextEncoder().encode(text);
  return listenTcp({ port }, (connection) => {
    const answered = connection.read().then(() => connection.write(bytes));
    const close = () => connection.close();
    answered.then(close, close);
  });
}

const DEADLINE_SECONDS = 5;
/** Longer than a token. */
const LONGEST_ANSWER = 1024;

/** The answer to a connection. @throws without an answer within {@link DEADLINE_SECONDS} */
async function answerOf(target: Target): Promise<string> {
  const deadlineMs = DEADLINE_SECONDS * 1000;
  const late = `no answer within ${DEADLINE_SECONDS} s`;
  const connection = await connectTcp(target, { deadlineMs }).catch((error: NetError) => {
    throw new Error(error.code === "ETIMEDOUT" ? late : (error.code ?? error.message));
  });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    connection.close();
  }, deadlineMs);
  const received = new Gathered();
  try {
    await connection.write(QUESTION);
    for (let bytes = await connection.read(); bytes !== undefined; bytes = await connection.read()) {
      received.add(bytes);
      if (received.size > LONGEST_ANSWER) throw new Error("another host answered");
    }
    return new TextDecoder().decode(received.take());
  } catch (error) {
    throw isLate ? new Error(late) : error;
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}

interface ValidateDeps {
  readonly settings: Settings;
  readonly log: Log;
}

/** Why a connection did not arrive here; undefined if it did. */
async function problemOf(target: Target, token: string): Promise<string | undefined> {
  try {
    return (await answerOf(target)) === token ? undefined : "another host answered";
  } catch (error) {
    return reasonOf(error);
  }
}

/**
 * Tests, inside a pod that the plugin treats as meshed, whether the plugin has redirected it: listens on the proxy's
 * port, and connects to unused addresses. @throws an Error if connections are not redirected, with the attempt,
 * possible causes, and next steps
 */
export async function validate({ settings, log }: ValidateDeps): Promise<void> {
  const { namespace, nodeName } = settings;
  const { proxyPort, targets } = planValidation(stanzaFromText(settings.stanza), settings.addresses);
  const token = randomUUID();
  const server = await answering(proxyPort, token);
  try {
    for (const target of targets) {
      const { host, port } = target;
      const tried = `node ${nodeName}: a connection to port ${port} of ${host}`;
      const problem = await problemOf(target, token);
      if (problem !== undefined) {
        throw new Error(
          `${tried} is not redirected to the proxy's port ${proxyPort}: ${problem}. The plugin is not in this node's CNI ` +
            `chain, has another configuration, or was not yet there when this pod started. Run l5d-cni check --cni-namespace ${namespace}, ` +
            `or look at the installer on this node: kubectl get pods -n ${namespace} -l k8s-app=linkerd-cni -o wide`,
        );
      }
      log.info(`${tried} is redirected to the proxy's port ${proxyPort}`);
    }
  } finally {
    server.close();
  }
}
