/** Programs and compares rules in each mode. */
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import { tooOldForNative } from "../cni/kernel";
import type { RuleSet } from "../cni/redirect/rules";
import type { IptablesMode, LinkerdConfig, OwnMode } from "../cni/stanza";
import { readText } from "../host/files";
import type { Host } from "../host/port";
import { applyNative, isUnsupported } from "../netlink/apply";
import { type Comparison, compareNative } from "../netlink/compare";
import { hasLegacyNat } from "../netlink/legacy";
import { netfilter } from "../netlink/socket";
import { Iptables } from "./iptables/apply";
import type { Log } from "./log";

/** Whether the plugin tries to program the rules itself, without iptables. */
const isOwnMode = (mode: IptablesMode): mode is OwnMode => mode === "auto" || mode === "native";

function applyLegacy(host: Host, linkerd: LinkerdConfig, sets: readonly RuleSet[], reason: string, log: Log): "legacy" {
  log("warn", `${reason}: using legacy iptables`);
  try {
    new Iptables(host, "legacy", linkerd).apply(sets);
    return "legacy";
  } catch (error) {
    const details = error instanceof CniError ? error.details : "";
    throw new CniError(ErrorCode.rulesRefused, `${reason}; ${reasonOf(error)}`, details, { cause: error });
  }
}

/** Mode native, or legacy if the kernel's nf_tables cannot redirect. */
function applyAuto(host: Host, linkerd: LinkerdConfig, sets: readonly RuleSet[], log: Log): "native" | "legacy" {
  const problem = kernelProblem(host);
  if (problem !== undefined) return applyLegacy(host, linkerd, sets, problem, log);
  try {
    applyNative(netfilter(host), sets);
    return "native";
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    const reason = `this kernel has no nf_tables to redirect with (${reasonOf(error)})`;
    return applyLegacy(host, linkerd, sets, reason, log);
  }
}

function refuseOldKernel(host: Host): void {
  const problem = kernelProblem(host);
  if (problem !== undefined) throw new CniError(ErrorCode.rulesRefused, `${problem}: set the mode to auto or legacy`);
}

/**
 * Programs the rules in the process's current namespace, in the configured mode.
 * @returns the used mode
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
  if (mode === "native") {
    refuseOldKernel(host);
    applyNative(netfilter(host), sets);
  } else new Iptables(host, mode, linkerd).apply(sets);
  return mode;
}

/** Why ADD cannot program rules in the configured mode, as far as known; undefined if it can. */
export function modeProblem(host: Host, linkerd: LinkerdConfig): string | undefined {
  const mode = linkerd["iptables-mode"];
  const problem = isOwnMode(mode) ? kernelProblem(host) : undefined;
  if (problem === undefined || (mode === "auto" && new Iptables(host, "legacy", linkerd).isInstalled()))
    return undefined;
  return `${problem}${mode === "auto" ? ", and the node has no iptables-legacy" : ""}`;
}

/** Compares native rules. A kernel without nf_tables does not have any. */
function compareNativeOrNone(host: Host): Comparison {
  try {
    return compareNative(netfilter(host));
  } catch (error) {
    if (isUnsupported(error)) return { isThere: false };
    throw error;
  }
}

/** Compares the rules in the process's current namespace with those that ADD programmed. */
export function compareRules(host: Host, linkerd: LinkerdConfig): Comparison {
  const mode = linkerd["iptables-mode"];
  const native = isOwnMode(mode) ? compareNativeOrNone(host) : { isThere: false };
  if (native.isThere || mode === "native") return native;
  if (mode === "auto" && !hasLegacyNat(host)) return { isThere: false };
  return new Iptables(host, mode === "auto" ? "legacy" : mode, linkerd).compare();
}

const RELEASE = "/proc/sys/kernel/osrelease";

/** Why this machine's kernel is too old for mode native; undefined if it is not, or does not tell. */
function kernelProblem(host: Host): string | undefined {
  try {
    return tooOldForNative(readText(host, RELEASE).trim());
  } catch {
    return undefined;
  }
}
