/** How rules are programmed and read back in each mode. */
import type { RuleSet } from "../cni/redirect/rules";
import type { IptablesMode, LinkerdConfig } from "../cni/stanza";
import type { World } from "./call";
import type { HostMode, Iptables } from "./iptables/apply";
import type { Log } from "./log";
import { applyNative } from "./netlink/apply";
import { Errno, SystemError } from "./netlink/port";

/** What one mode does, in the namespace the calling thread is in. */
export interface Applier {
  readonly mode: Exclude<IptablesMode, "auto">;
  apply(sets: readonly RuleSet[]): void;
  /** The first difference between the rules in force and those that should be. */
  difference(sets: readonly RuleSet[]): string | undefined;
}

function native(world: World): Applier {
  return {
    mode: "native",
    apply: (sets) => applyNative(world.kernel, sets),
    difference(sets) {
      const { nativeDifference } = require("./netlink/compare") as typeof import("./netlink/compare");
      return nativeDifference(world.kernel, sets);
    },
  };
}

function byHost(mode: HostMode, linkerd: LinkerdConfig, world: World): Applier {
  let made: Iptables | undefined;
  const iptables = () => {
    const { Iptables: Class } = require("./iptables/apply") as typeof import("./iptables/apply");
    made ??= new Class(world.host, mode, linkerd["use-wait-flag"]);
    return made;
  };
  return { mode, apply: (sets) => iptables().apply(sets), difference: (sets) => iptables().difference(sets) };
}

/** What a kernel without nf_tables, its nat chains or its redirect answers. */
const UNSUPPORTED: readonly number[] = [Errno.ENOENT, Errno.EPROTONOSUPPORT, Errno.EOPNOTSUPP, Errno.EAFNOSUPPORT];

/** What choosing a mode takes. */
interface Setting {
  readonly linkerd: LinkerdConfig;
  readonly world: World;
  readonly log: Log;
}

/** Does work natively, and where the kernel has no nf_tables, by legacy iptables. */
function automatically<T>({ linkerd, world, log }: Setting, work: (applier: Applier) => T): T {
  try {
    return work(native(world));
  } catch (error) {
    if (!(error instanceof SystemError) || !UNSUPPORTED.includes(error.errno)) throw error;
    log("warn", `this kernel has no nf_tables to redirect with (${error.message}): using legacy iptables`);
    return work(byHost("legacy", linkerd, world));
  }
}

/** Does work in the mode that the configuration asks for. */
export function withApplier<T>(setting: Setting, work: (applier: Applier) => T): T {
  const { linkerd, world } = setting;
  const mode = linkerd["iptables-mode"];
  if (mode === "auto") return automatically(setting, work);
  return work(mode === "native" ? native(world) : byHost(mode, linkerd, world));
}
