import { CniError, ErrorCode, quoted } from "./errors";
import { isVerb, REQUIRED, VARIABLES, type Variable } from "./verbs";

/** The environment of a call; an empty value counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The target of a call; empty if the verb does not need it: {@link REQUIRED}. */
export interface CallTarget {
  readonly netns: string;
}

const IDENTIFIER = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
const MAX_INTERFACE_NAME = 15;

/** Whether a container id or a network's name is well-formed. A trailing newline is not. */
export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}

/** Bytes of a text in UTF-8. */
function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    length += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return length;
}

function interfaceNameProblem(name: string): string | undefined {
  if (utf8Length(name) > MAX_INTERFACE_NAME) return `is longer than ${MAX_INTERFACE_NAME} bytes`;
  if (name === "." || name === "..") return "is not a name";
  return /[/:\p{White_Space}]/u.test(name) ? "holds a slash, a colon or white space" : undefined;
}

/** The problem of a set value, if any. */
const problems: Readonly<Partial<Record<Variable, (value: string) => string | undefined>>> = {
  CNI_CONTAINERID: (value) => (isIdentifier(value) ? undefined : "is not a container id"),
  CNI_IFNAME: interfaceNameProblem,
};

function refuseInvalid(env: Environment, needed: readonly Variable[]): void {
  for (const name of VARIABLES) {
    const value = env[name];
    const problem = value && needed.includes(name) ? problems[name]?.(value) : undefined;
    if (value !== undefined && problem !== undefined) {
      throw new CniError(ErrorCode.environment, `${name} ${quoted(value)} ${problem}`);
    }
  }
}

/**
 * The target of a call, checked for its verb. An unknown verb needs nothing. @throws CniError 4 for an invalid value,
 * else for all missing ones at once
 */
export function readTarget(env: Environment, command: string): CallTarget {
  const needed = isVerb(command) ? REQUIRED[command] : [];
  refuseInvalid(env, needed);
  const missing = needed.filter((name) => !env[name]);
  if (missing.length > 0) {
    throw new CniError(ErrorCode.environment, `${command} needs ${missing.join(", ")} in the environment`);
  }
  return { netns: env["CNI_NETNS"] ?? "" };
}

/** The pod of a sandbox, from the runtime's `CNI_ARGS`. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
  /** Distinguishes it from earlier and later pods with the same name; not all runtimes pass it. */
  readonly uid?: string | undefined;
}

/** Names that need no escaping in an API path. */
export const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/**
 * The pod named in `CNI_ARGS`; undefined if namespace or name is missing: then the sandbox is not a pod's.
 * @throws CniError 4 if a name cannot be a Kubernetes object's
 */
export function readPodName(env: Environment): PodName | undefined {
  const given = new Map<string, string>();
  for (const pair of (env["CNI_ARGS"] ?? "").split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0) given.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  const namespace = given.get("K8S_POD_NAMESPACE");
  const name = given.get("K8S_POD_NAME");
  if (!namespace || !name) return undefined;
  for (const [key, value] of Object.entries({ K8S_POD_NAMESPACE: namespace, K8S_POD_NAME: name })) {
    if (!OBJECT_NAME.test(value)) {
      throw new CniError(ErrorCode.environment, `CNI_ARGS: ${key} ${quoted(value)} is not an object's name`);
    }
  }
  const uid = given.get("K8S_POD_UID");
  return { namespace, name, uid: uid || undefined };
}
