/** How rules are programmed and read back in each mode. */
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { RuleSet } from "../cni/redirect/rules";
import type { IptablesMode, LinkerdConfig } from "../cni/stanza";
import type { World } from "./call";
import type { HostMode, Iptables } from "./iptables/apply";
import type { Log } from "./log";
import { applyNative } from "./netlink/apply";
import { Errno, SystemError } from "./system-error";

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

interface HostApplier extends Applier {
  /** Whether it can be seen that rules were programmed this way. */
  hasChains(): boolean;
}

function byHost(mode: HostMode, linkerd: LinkerdConfig, world: World): HostApplier {
  let made: Iptables | undefined;
  const iptables = () => {
    const { Iptables: Class } = require("./iptables/apply") as typeof import("./iptables/apply");
    made ??= new Class(world.host, mode, linkerd);
    return made;
  };
  return {
    mode,
    apply: (sets) => iptables().apply(sets),
    difference: (sets) => iptables().difference(sets),
    hasChains: () => iptables().hasChains("ip"),
  };
}

/** What a kernel without nf_tables, its nat chains or its redirect answers. */
const UNSUPPORTED: readonly number[] = [Errno.ENOENT, Errno.EPROTONOSUPPORT, Errno.EOPNOTSUPP, Errno.EAFNOSUPPORT];

/** What choosing a mode takes. */
interface Setting {
  readonly linkerd: LinkerdConfig;
  readonly world: World;
  readonly log: Log;
}

function isUnsupported(error: unknown): boolean {
  return error instanceof SystemError && UNSUPPORTED.includes(error.errno);
}

/** Native, and where the kernel has no nf_tables, by legacy iptables. */
class Auto implements Applier {
  mode: Applier["mode"] = "native";
  private readonly first: Applier;
  private readonly second: HostApplier;

  constructor(private readonly setting: Setting) {
    this.first = native(setting.world);
    this.second = byHost("legacy", setting.linkerd, setting.world);
  }

  apply(sets: readonly RuleSet[]): void {
    try {
      this.first.apply(sets);
    } catch (error) {
      if (!isUnsupported(error)) throw error;
      const reason = `this kernel has no nf_tables to redirect with (${reasonOf(error)})`;
      this.setting.log("warn", `${reason}: using legacy iptables`);
      this.mode = this.second.mode;
      this.applySecond(sets, reason);
    }
  }

  private applySecond(sets: readonly RuleSet[], reason: string): void {
    try {
      this.second.apply(sets);
    } catch (error) {
      const details = error instanceof CniError ? error.details : "";
      throw new CniError(ErrorCode.rulesRefused, `${reason}; ${reasonOf(error)}`, details, { cause: error });
    }
  }

  difference(sets: readonly RuleSet[]): string | undefined {
    return (this.isSecond() ? this.second : this.first).difference(sets);
  }

  /** Where nothing native is there at all, the rules may be legacy ones. */
  private isSecond(): boolean {
    const { hasTable } = require("./netlink/readback") as typeof import("./netlink/readback");
    try {
      return !hasTable(this.setting.world.kernel, "ip") && this.second.hasChains();
    } catch (error) {
      if (isUnsupported(error)) return true;
      throw error;
    }
  }
}

/** What programs the rules in the mode that the configuration asks for. */
export function applierFor(setting: Setting): Applier {
  const { linkerd, world } = setting;
  const mode = linkerd["iptables-mode"];
  if (mode === "auto") return new Auto(setting);
  return mode === "native" ? native(world) : byHost(mode, linkerd, world);
}
