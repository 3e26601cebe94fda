/** Modes nft, legacy and plain: the host's iptables, one transaction a family. */
import { CniError, ErrorCode } from "../../cni/errors";
import { restoreText, savedDifference, undoText } from "../../cni/redirect/iptables";
import type { RuleSet } from "../../cni/redirect/rules";
import type { Family } from "../../cni/subnets";
import type { HostPrograms } from "./host";

export type HostMode = "nft" | "legacy" | "plain";

const PROGRAM: Readonly<Record<Family, string>> = { ip: "iptables", ip6: "ip6tables" };
const SUFFIX: Readonly<Record<HostMode, string>> = { nft: "-nft", legacy: "-legacy", plain: "" };
const WAIT = ["-w", "5"];

/** The host's iptables in one mode; where the program of that mode is missing, plain iptables takes its place. */
export class Iptables {
  constructor(
    private readonly host: HostPrograms,
    private readonly mode: HostMode,
    /** Wait for the lock that all iptables of the node share. */
    private readonly wait: boolean,
  ) {}

  /**
   * Programs the families one after the other, each in one transaction; where one fails, those before it are undone.
   * @throws CniError 101
   */
  apply(sets: readonly RuleSet[]): void {
    const plans = sets.map((set) => {
      this.find(set.family, "restore");
      return { set, saved: this.save(set.family) };
    });
    for (const [done, { set, saved }] of plans.entries()) {
      try {
        this.restore(set.family, restoreText(set, saved));
      } catch (error) {
        for (const plan of plans.slice(0, done)) this.restore(plan.set.family, undoText(plan.saved));
        throw error;
      }
    }
  }

  /** The first difference between the rules in force and those that should be. */
  difference(sets: readonly RuleSet[]): string | undefined {
    const differences = sets.map((set) => savedDifference(set, this.save(set.family)));
    return differences.find((difference) => difference !== undefined);
  }

  private restore(family: Family, text: string): void {
    this.run(family, "restore", ["--noflush", ...(this.wait ? WAIT : [])], text);
  }

  private save(family: Family): string {
    return this.run(family, "save", ["-t", "nat"], "");
  }

  private run(family: Family, action: "save" | "restore", args: readonly string[], input: string): string {
    const program = this.find(family, action);
    const { status, stdout, stderr } = this.host.run(program, args, input);
    if (status === 0) return stdout;
    throw new CniError(
      ErrorCode.rulesRefused,
      `${program} ${args.join(" ")} failed with ${status === null ? "a signal" : `status ${status}`}: ${stderr.trim()}`,
      input,
    );
  }

  private find(family: Family, action: string): string {
    const named = `${PROGRAM[family]}${SUFFIX[this.mode]}-${action}`;
    const plain = `${PROGRAM[family]}-${action}`;
    const found = this.host.find(named) ?? this.host.find(plain);
    if (found !== undefined) return found;
    const missing = named === plain ? named : `neither ${named} nor ${plain}`;
    throw new CniError(
      ErrorCode.rulesRefused,
      `iptables-mode ${this.mode}: the node has ${named === plain ? `no ${missing}` : missing}; mode native needs no program`,
    );
  }
}
