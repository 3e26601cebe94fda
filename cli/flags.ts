import { values } from "../constructs";
import { type Field, fieldsOf } from "../constructs/helm";

/** A flag that sets one value. */
export interface ValueFlag {
  /** As commander declares it. */
  readonly flags: string;
  readonly path: readonly string[];
  /** May be given more than once; the parts are joined by commas. */
  readonly list?: boolean;
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
  { flags: "--use-wait-flag", path: ["useWaitFlag"] },
];

const fields = new Map(fieldsOf(values).map((field) => [field.path.join("."), field]));

/** What the values say about a flag. */
export function fieldOf(path: readonly string[]): Field {
  const field = fields.get(path.join("."));
  if (field === undefined) throw new Error(`no value ${path.join(".")}`);
  return field;
}

/** The name under which commander passes a flag: `--proxy-uid <uid>` is `proxyUid`. */
export function optionName({ flags }: ValueFlag): string {
  const long = /--([\w-]+)/.exec(flags)?.[1] ?? "";
  return long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
