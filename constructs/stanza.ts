import { KUBECONFIG_PLACEHOLDER, PLUGIN_TYPE, POD_ANNOTATIONS, type Stanza } from "../cni/stanza";
import {
  and,
  assert,
  compact,
  concat,
  each,
  first,
  ge,
  type Input,
  int,
  items,
  last,
  le,
  nospace,
  not,
  type Refs,
  split,
  type Templated,
  text,
  when,
} from "./helm";
import { MAX_PORT, NOT_A_RANGE } from "./value-types";
import type { Values } from "./values";

/** The stanza with expressions in it; what is left out has the plugin's default. */
export type StanzaTemplate = { readonly [Key in keyof Stanza]: Templated<Partial<Stanza[Key]>> | undefined };

/** The pods that the plugin always lets pass: the installer's own. */
export interface OwnPods {
  readonly namespace: Input<string>;
  readonly daemonset: string;
}

const listed = (list: Input<string>): Input<readonly string[]> => compact(split(nospace(list), ","));

/** Items of a list of ports, each checked: a JSON schema cannot compare the two ends of a range. */
function checked<T>(name: keyof Values, list: Input<string>, make: (range: Input<string>) => Input<T>) {
  return each(listed(list), "range", (range) => {
    const ends = split(range, "-");
    const low = int(first(ends));
    const high = int(last(ends));
    return assert(and(le(low, high), le(high, MAX_PORT)), concat(`${name}: `, range, ` ${NOT_A_RANGE}`), make(range));
  });
}

/** The plugin's stanza for some values, as the ConfigMap holds it. */
export function stanzaOf(values: Refs<Values>, ownPods: OwnPods): StanzaTemplate {
  return {
    name: PLUGIN_TYPE,
    type: PLUGIN_TYPE,
    log_level: values.logLevel,
    kubernetes: { kubeconfig: KUBECONFIG_PLACEHOLDER },
    linkerd: {
      "incoming-proxy-port": values.inboundProxyPort,
      "outgoing-proxy-port": values.outboundProxyPort,
      "proxy-uid": values.proxyUID,
      "proxy-gid": when(ge(values.proxyGID, 0), values.proxyGID),
      "ports-to-redirect": checked("portsToRedirect", values.portsToRedirect, (range) => int(range)),
      "inbound-ports-to-ignore": [
        text(values.proxyAdminPort),
        text(values.proxyControlPort),
        ...items(checked("ignoreInboundPorts", values.ignoreInboundPorts, text)),
      ],
      "outbound-ports-to-ignore": when(
        listed(values.ignoreOutboundPorts),
        checked("ignoreOutboundPorts", values.ignoreOutboundPorts, text),
      ),
      simulate: false,
      "use-wait-flag": values.useWaitFlag,
      "iptables-mode": values.iptablesMode,
      ipv6: not(values.disableIPv6),
    },
    "pod-lookup": values.podLookup,
    "strict-status": values.strictStatus,
    "own-pods": { namespace: ownPods.namespace, daemonset: ownPods.daemonset },
    capabilities: { [POD_ANNOTATIONS]: true },
  };
}
