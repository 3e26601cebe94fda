/** How rules are programmed and compared in each mode. */
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { RuleSet } from "../cni/redirect/rules";
import type { IptablesMode, LinkerdConfig } from "../cni/stanza";
import type { Host } from "../host/port";
import { applyNative, isUnsupported } from "../netlink/apply";
import { type Comparison, compareNative } from "../netlink/compare";
import { hasLegacyNat } from "../netlink/legacy";
import { netfilter } from "../netlink/socket";
import { Iptables } from "./iptables/apply";
import type { Log } from "./log";

/** Mode native, or legacy where the kernel has no nf_tables. */
function applyAuto(host: Host, linkerd: LinkerdConfig, sets: readonly RuleSet[], log: Log): "native" | "legacy" {
  try {
    applyNative(netfilter(host), sets);
    return "native";
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    const reason = `this kernel has no nf_tables to redirect with (${reasonOf(error)})`;
    log("warn", `${reason}: using legacy iptables`);
    try {
      new Iptables(host, "legacy", linkerd).apply(sets);
      return "legacy";
    } catch (second) {
      const details = second instanceof CniError ? second.details : "";
      throw new CniError(ErrorCode.rulesRefused, `${reason}; ${reasonOf(second)}`, details, { cause: second });
    }
  }
}

/**
 * Programs the rules in the namespace that the process is in, in the mode that the configuration asks for.
 * @returns the mode that was used
 * @throws CniError, SystemError
 */
export function applyRules(
  host: Host,
  linkerd: LinkerdConfig,
  sets: readonly RuleSet[],
  log: Log,
): Exclude<IptablesMode, "auto"> {
  const mode = linkerd["iptables-mode"];
  if (mode === "auto") return applyAuto(host, linkerd, sets, log);
  if (mode === "native") applyNative(netfilter(host), sets);
  else new Iptables(host, mode, linkerd).apply(sets);
  return mode;
}

/** Compares native rules. A kernel without nf_tables has none. */
function compareNativeOrNone(host: Host): Comparison {
  try {
    return compareNative(netfilter(host));
  } catch (error) {
    if (isUnsupported(error)) return { isThere: false };
    throw error;
  }
}

/** Compares the rules in force, in the namespace that the process is in, with what ADD set there. */
export function compareRules(host: Host, linkerd: LinkerdConfig): Comparison {
  const mode = linkerd["iptables-mode"];
  const native = mode === "auto" || mode === "native" ? compareNativeOrNone(host) : { isThere: false };
  if (native.isThere || mode === "native") return native;
  if (mode === "auto" && !hasLegacyNat(host)) return { isThere: false };
  return new Iptables(host, mode === "auto" ? "legacy" : mode, linkerd).compare();
}
