import { CNI_NAME } from "../../cni/contract";
import { type Source, type Sources, sourcesOf } from "../../cni/decide";
import { parseStanza } from "../../cni/parse-stanza";
import type { IptablesMode, LinkerdConfig, Stanza } from "../../cni/stanza";
import type { Evidence, PodDecision } from "./evidence";

/** One setting of a redirect. */
export interface Row {
  readonly what: string;
  readonly value: string;
  /** The source of the value. */
  readonly from: string;
}

type Redirected = Extract<PodDecision, { kind: "redirected" }>;

const modes: Readonly<Record<IptablesMode, string>> = {
  auto: "auto: over netlink, or by legacy iptables if the kernel has no nf_tables",
  native: "native: over netlink",
  nft: "nft: by the node's iptables-nft",
  legacy: "legacy: by the node's iptables-legacy",
  plain: "plain: by the node's iptables",
};

/** The connections that each option excepts from the redirect, in the order of the rows. */
const EXCEPTIONS: Readonly<Record<keyof Sources, readonly ["inbound" | "outbound", string]>> = {
  skipInboundPorts: ["inbound", "  not to port"],
  skipInboundSubnets: ["inbound", "  not from network"],
  proxyUid: ["outbound", "  not of user"],
  proxyGid: ["outbound", "  not of group"],
  skipOutboundPorts: ["outbound", "  not to port"],
  skipOutboundSubnets: ["outbound", "  not to network"],
};
const OPTIONS = Object.keys(EXCEPTIONS) as (keyof Sources)[];

const listed = (text: string) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "")
    .join(",");

/** Describes the sources of settings. */
class Origins {
  private readonly defaults: Stanza;
  private readonly defaultSources: Sources;

  constructor(
    private readonly redirected: Redirected,
    private readonly evidence: Evidence,
  ) {
    const { pod } = redirected.known;
    this.defaults = parseStanza(evidence.defaults, CNI_NAME);
    this.defaultSources = sourcesOf({ ...pod, annotations: {} }, {}, this.defaults);
  }

  ofField(field: keyof LinkerdConfig): string {
    const [ours, usual] = [this.redirected.known.stanza, this.defaults].map(({ linkerd }) => linkerd[field]);
    return this.configuration(JSON.stringify(ours) === JSON.stringify(usual));
  }

  ofSource(option: keyof Sources, { from, text, where }: Source): string {
    if (from === "service") return this.apiServer(where);
    if (from !== "configuration") return where;
    return this.configuration(this.defaultSources[option].some((usual) => usual.text === text));
  }

  private apiServer(where: string): string {
    return this.redirected.known.around.apiServerPorts === undefined ? "the API server's usual ports" : where;
  }

  private configuration(isDefault: boolean): string {
    const { configMap } = this.evidence;
    if (configMap === undefined) return "chart default";
    return `ConfigMap ${configMap}${isDefault ? " (chart default)" : ""}`;
  }
}

/** The NRI plugin programs only by netlink. */
const modeOf = ({ chained, nri }: Evidence, mode: IptablesMode): string => modes[nri && !chained ? "native" : mode];

/** The component that sets the rules, if not only the chain. */
function setBy({ chained, nri }: Evidence): readonly Row[] {
  if (!nri) return [];
  if (!chained) return [{ what: "set by", value: "the NRI plugin, as the pod starts", from: "chained: false" }];
  return [{ what: "set by", value: "the chain, or else the NRI plugin", from: "nri.enabled" }];
}

/** How a pod is redirected, line by line. */
export function rowsOf(redirected: Redirected, evidence: Evidence): readonly Row[] {
  const { options, known } = redirected;
  const { linkerd } = known.stanza;
  const origins = new Origins(redirected, evidence);
  const sources = sourcesOf(known.pod, known.around, known.stanza);
  const excepted = (direction: "inbound" | "outbound") =>
    OPTIONS.filter((option) => EXCEPTIONS[option][0] === direction).flatMap((option) =>
      sources[option]
        // An id of 0 or less does not make a rule.
        .filter(({ text }) => text.trim() !== "" && options[option] !== undefined)
        .map((source) => ({
          what: EXCEPTIONS[option][1],
          value: listed(source.text),
          from: origins.ofSource(option, source),
        })),
    );
  const all = options.portsToRedirect.length === 0;
  const inbound = all ? "TCP to any port" : `TCP to ports ${options.portsToRedirect.join(",")}`;
  return [
    {
      what: "inbound",
      value: `${inbound}, to the proxy's port ${options.inboundPort}`,
      from: origins.ofField(all ? "incoming-proxy-port" : "ports-to-redirect"),
    },
    ...excepted("inbound"),
    {
      what: "outbound",
      value: `TCP to any port, to the proxy's port ${options.outboundPort}`,
      from: origins.ofField("outgoing-proxy-port"),
    },
    { what: "  not through", value: "lo", from: "always" },
    ...excepted("outbound"),
    { what: "addresses", value: options.ipv6 ? "IPv4 and IPv6" : "IPv4 only", from: origins.ofField("ipv6") },
    { what: "mode", value: modeOf(evidence, linkerd["iptables-mode"]), from: origins.ofField("iptables-mode") },
    ...setBy(evidence),
  ];
}
