import { values } from "../constructs/values";
import { type Field, fieldsOf } from "../helm/value";

/** A flag that sets one value. */
export interface ValueFlag {
  /** Its declaration for commander. */
  readonly flags: string;
  readonly path: readonly string[];
  /** May be repeated; the parts are joined by commas. */
  readonly list?: boolean;
}

const yes = ["1", "t", "T", "TRUE", "true", "True"];
const no = ["0", "f", "F", "FALSE", "false", "False"];

/** A boolean in Go's syntax, as linkerd's flags accept after `=`. @throws an Error that names the flag */
export function booleanOf(flag: string, text: string): boolean {
  if (yes.includes(text)) return true;
  if (no.includes(text)) return false;
  throw new Error(`${flag}: ${JSON.stringify(text)} is not true or false`);
}

/** The flags of linkerd's `install-cni`, and the value that each one sets. */
export const VALUE_FLAGS: readonly ValueFlag[] = [
  { flags: "--proxy-uid <uid>", path: ["proxyUID"] },
  { flags: "--proxy-gid <gid>", path: ["proxyGID"] },
  { flags: "--inbound-port <port>", path: ["inboundProxyPort"] },
  { flags: "--outbound-port <port>", path: ["outboundProxyPort"] },
  { flags: "--control-port <port>", path: ["proxyControlPort"] },
  { flags: "--admin-port <port>", path: ["proxyAdminPort"] },
  { flags: "--skip-inbound-ports <ports>", path: ["ignoreInboundPorts"], list: true },
  { flags: "--skip-outbound-ports <ports>", path: ["ignoreOutboundPorts"], list: true },
  { flags: "--redirect-ports <ports>", path: ["portsToRedirect"], list: true },
  { flags: "--cni-image <name>", path: ["image", "name"] },
  { flags: "--cni-image-version <tag>", path: ["image", "version"] },
  { flags: "--cni-log-level <level>", path: ["logLevel"] },
  { flags: "--dest-cni-net-dir <directory>", path: ["destCNINetDir"] },
  { flags: "--dest-cni-bin-dir <directory>", path: ["destCNIBinDir"] },
  { flags: "--priority-class-name <name>", path: ["priorityClassName"] },
  { flags: "--use-wait-flag [boolean]", path: ["useWaitFlag"] },
  // The only flag that linkerd's command does not have.
  { flags: "--platform <name>", path: ["platform"] },
];

const fields = new Map(fieldsOf(values).map((field) => [field.path.join("."), field]));

/** The definition of a flag's value. */
export function fieldOf(path: readonly string[]): Field {
  const field = fields.get(path.join("."));
  if (field === undefined) throw new Error(`no value ${path.join(".")}`);
  return field;
}

/** The name of a flag on the command line, with its dashes. */
export const nameOf = ({ flags }: ValueFlag): string => flags.split(" ")[0] ?? "";

/** The name under which commander passes a flag: `--proxy-uid <uid>` is `proxyUid`. */
export function optionName({ flags }: ValueFlag): string {
  const long = /--([\w-]+)/.exec(flags)?.[1] ?? "";
  return long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
