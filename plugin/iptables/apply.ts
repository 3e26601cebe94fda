/** Modes nft, legacy and plain: the host's iptables, one transaction a family. */
import { CniError, ErrorCode, reasonOf } from "../../cni/errors";
import { hasChains, restoreText, savedDifference, undoText } from "../../cni/redirect/iptables";
import type { RuleSet } from "../../cni/redirect/rules";
import type { LinkerdConfig } from "../../cni/stanza";
import type { Family } from "../../cni/subnets";
import type { HostPrograms } from "./host";

export type HostMode = "nft" | "legacy" | "plain";

const PROGRAM: Readonly<Record<Family, string>> = { ip: "iptables", ip6: "ip6tables" };
const SUFFIX: Readonly<Record<HostMode, string>> = { nft: "-nft", legacy: "-legacy", plain: "" };
/** Waits for the lock that all iptables of the node share. */
const WAIT = ["-w", "5"];
const SAVE = ["-t", "nat"];

/** What a family is to have, and what it had. */
interface Plan {
  readonly set: RuleSet;
  readonly saved: string;
}

/** The host's iptables in one mode; where the program of that mode is missing, plain iptables takes its place. */
export class Iptables {
  constructor(
    private readonly host: HostPrograms,
    private readonly mode: HostMode,
    private readonly linkerd: LinkerdConfig,
  ) {}

  /**
   * Programs the families one after the other, each in one transaction; where one fails, those before it are undone.
   * @throws CniError 101
   */
  apply(sets: readonly RuleSet[]): void {
    const plans = sets.map((set): Plan => {
      this.find(set.family, "restore");
      return { set, saved: this.save(set.family) };
    });
    for (const [done, { set, saved }] of plans.entries()) {
      try {
        this.restore(set.family, restoreText(set, saved));
      } catch (error) {
        throw this.undo(plans.slice(0, done), error as CniError);
      }
    }
  }

  /** Undoes what was done before a failure; gives the failure, with what could not be undone. */
  private undo(plans: readonly Plan[], failure: CniError): CniError {
    const left = plans.flatMap(({ set, saved }) => {
      try {
        this.restore(set.family, undoText(saved));
        return [];
      } catch (error) {
        return [`not undone: ${reasonOf(error)}`];
      }
    });
    if (left.length === 0) return failure;
    const { code, message, details } = failure;
    return new CniError(code, message, [details, ...left].join("\n"), { cause: failure });
  }

  /** The first difference between the rules in force and those that should be. */
  difference(sets: readonly RuleSet[]): string | undefined {
    const differences = sets.map((set) => savedDifference(set, this.save(set.family)));
    return differences.find((difference) => difference !== undefined);
  }

  /** Whether chains of ours are there, as far as a program that can tell is. */
  hasChains(family: Family): boolean {
    const program = this.look(family, "save");
    return program !== undefined && hasChains(this.host.run(program, SAVE, "").stdout);
  }

  private restore(family: Family, text: string): void {
    this.run(family, "restore", ["--noflush", ...(this.linkerd["use-wait-flag"] ? WAIT : [])], text);
  }

  private save(family: Family): string {
    return this.run(family, "save", SAVE, "");
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

  /** The names of a program, the mode's own first. */
  private names(family: Family, action: string): readonly string[] {
    const names = [SUFFIX[this.mode], ""].map((suffix) => `${PROGRAM[family]}${suffix}-${action}`);
    return [...new Set(names)];
  }

  private look(family: Family, action: string): string | undefined {
    const paths = this.names(family, action).map((name) => this.host.find(name));
    return paths.find((path) => path !== undefined);
  }

  private find(family: Family, action: string): string {
    const found = this.look(family, action);
    if (found !== undefined) return found;
    const names = this.names(family, action);
    const missing = names.length > 1 ? `neither ${names.join(" nor ")}` : `no ${names[0]}`;
    const asked = this.linkerd["iptables-mode"];
    const remedy = asked === "auto" ? "" : "; mode native needs no program";
    throw new CniError(ErrorCode.rulesRefused, `iptables-mode ${asked}: the node has ${missing}${remedy}`);
  }
}
