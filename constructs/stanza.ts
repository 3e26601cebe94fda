import { CNI_NAME, NodePath } from "../cni/contract";
import { MAX_PORT } from "../cni/ports";
import {
  type IptablesMode,
  KUBECONFIG_PLACEHOLDER,
  type LogLevel,
  OWN_MODES,
  type OwnMode,
  PLUGIN_TYPE,
  POD_ANNOTATIONS,
  type Stanza,
} from "../cni/stanza";
import {
  and,
  assert,
  compact,
  concat,
  each,
  eq,
  first,
  ge,
  type Input,
  int,
  items,
  last,
  le,
  matches,
  not,
  type Refs,
  split,
  splitBy,
  type Templated,
  text,
  trim,
  when,
} from "../helm/index";
import { COMMA, PORT, PORT_RANGE, type PortItem } from "./value-groups";
import type { Values } from "./values";

/** The stanza with expressions; absent keys have the plugin's defaults. */
export type StanzaTemplate = { readonly [Key in keyof Stanza]: Templated<Partial<Stanza[Key]>> | undefined };

const listed = (list: Input<string>): Input<readonly string[]> => compact(splitBy(trim(list), COMMA));

/** A value that is a list of ports. */
interface PortList {
  readonly name: keyof Values;
  readonly list: Input<string>;
  readonly item: PortItem;
}

/** Items of a list of ports, each checked. */
function checked<T>({ name, list, item }: PortList, make: (range: Input<string>) => Input<T>) {
  return each(listed(list), "range", (range) => {
    const ends = split(range, "-");
    const low = int(first(ends));
    const high = int(last(ends));
    const isRight = and(matches(range, item.pattern), le(low, high), le(high, MAX_PORT));
    return assert(isRight, concat(`${name}: "`, list, '" has ', range, `, which ${item.wrong}`), make(range));
  });
}

/**
 * The mode in a form that linkerd's plugin also accepts: after `kubectl rollout undo` to linkerd's DaemonSet, its
 * installer uses our ConfigMap. A mode that only we have is replaced by linkerd's default.
 */
function modeOf({ iptablesMode }: Refs<Values>) {
  const isOurs = matches(iptablesMode, `^(${OWN_MODES.join("|")})$`);
  return {
    "iptables-mode": when(isOurs, "nft", iptablesMode) as Input<IptablesMode>,
    "redirect-mode": when(isOurs, iptablesMode) as Input<OwnMode>,
  };
}

/** The plugin's stanza for given values, as in the ConfigMap. @param namespace of the installer's pods */
export function stanzaOf(values: Refs<Values>, namespace: Input<string>): StanzaTemplate {
  const inbound: PortList = { name: "ignoreInboundPorts", list: values.ignoreInboundPorts, item: PORT_RANGE };
  const outbound: PortList = { name: "ignoreOutboundPorts", list: values.ignoreOutboundPorts, item: PORT_RANGE };
  const redirected: PortList = { name: "portsToRedirect", list: values.portsToRedirect, item: PORT };
  return {
    name: PLUGIN_TYPE,
    type: PLUGIN_TYPE,
    // Our plugin and linkerd's accept more names than they have levels.
    log_level: values.logLevel as Input<LogLevel>,
    kubernetes: { kubeconfig: KUBECONFIG_PLACEHOLDER },
    linkerd: {
      "incoming-proxy-port": values.inboundProxyPort,
      "outgoing-proxy-port": values.outboundProxyPort,
      "proxy-uid": values.proxyUID,
      "proxy-gid": when(ge(values.proxyGID, 0), values.proxyGID),
      "ports-to-redirect": checked(redirected, (range) => int(range)),
      "inbound-ports-to-ignore": [
        text(values.proxyAdminPort),
        text(values.proxyControlPort),
        ...items(checked(inbound, text)),
      ],
      "outbound-ports-to-ignore": when(listed(values.ignoreOutboundPorts), checked(outbound, text)),
      simulate: false,
      "use-wait-flag": values.useWaitFlag,
      ...modeOf(values),
      ipv6: not(values.disableIPv6),
    },
    "pod-lookup": values.podLookup,
    "strict-status": values.strictStatus,
    "run-dir": when(not(eq<string>(values.runDir, NodePath.runDir)), values.runDir),
    "own-pods": { namespace, daemonset: CNI_NAME },
    capabilities: { [POD_ANNOTATIONS]: true },
  };
}
