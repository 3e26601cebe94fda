/** Modes nft, legacy and plain: the host's iptables, one transaction per family. */
import { CniError, ErrorCode, reasonOf } from "../../cni/errors";
import { hasChains, removalText, restoreText, undoText } from "../../cni/redirect/iptables";
import type { RuleSet } from "../../cni/redirect/rules";
import { savedDifference } from "../../cni/redirect/saved";
import type { LinkerdConfig } from "../../cni/stanza";
import { FAMILIES, type Family } from "../../cni/subnets";
import { Errno, SystemError } from "../../host/errno";
import type { Host } from "../../host/port";
import type { Comparison } from "../../netlink/compare";

/** Where distributions install the host's own programs: the PATH of a runtime may be short. */
const USUAL = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
const TIMEOUT_MS = 10_000;

interface ProgramRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it printed more than is read, and was ended. */
  readonly isCut: boolean;
}

function directories(host: Host): readonly string[] {
  const given = (host.env("PATH") ?? "").split(":").filter((each) => each.startsWith("/"));
  return [...given, ...USUAL];
}

/** Path of a program in the directories of PATH or the usual ones. */
function findProgram(host: Host, name: string): string | undefined {
  return directories(host)
    .map((directory) => `${directory}/${name}`)
    .find((candidate) => host.access(candidate) === 0);
}

/** Runs a program in the namespace that this process is in. */
function runProgram(host: Host, program: string, args: readonly string[], input: string): ProgramRun {
  const env = [`PATH=${directories(host).join(":")}`];
  const { status, stdout, stderr, error } = host.run(program, args, input, env, TIMEOUT_MS);
  if (error === -Errno.EFBIG) return { status, stdout, stderr: "it prints more than 4 MiB", isCut: true };
  const problem = error === 0 ? "" : new SystemError(`run ${program}`, -error).message;
  return { status, stdout, stderr: `${stderr}${problem}`, isCut: false };
}

type HostMode = "nft" | "legacy" | "plain";

const PROGRAM: Readonly<Record<Family, string>> = { ip: "iptables", ip6: "ip6tables" };
const SUFFIX: Readonly<Record<HostMode, string>> = { nft: "-nft", legacy: "-legacy", plain: "" };
/** Waits for the node-wide lock of iptables. */
const WAIT = ["-w", "5"];
const SAVE = ["-t", "nat"];

/** A family's transaction and its previous rules. */
interface Plan {
  readonly family: Family;
  readonly saved: string;
  readonly text: string;
}

/** @throws CniError 101 */
function failed(program: string, args: readonly string[], { status, stderr }: ProgramRun, input = ""): never {
  const how = status === null ? "a signal" : `status ${status}`;
  throw new CniError(
    ErrorCode.rulesRefused,
    `${program} ${args.join(" ")} failed with ${how}: ${stderr.trim()}`,
    input,
  );
}

/** The host's iptables in one mode. Uses plain iptables if the host has no program for that mode. */
export class Iptables {
  constructor(
    private readonly host: Host,
    private readonly mode: HostMode,
    private readonly linkerd: LinkerdConfig,
  ) {}

  /** Whether the node has a program for this mode. */
  isInstalled(): boolean {
    return this.lookFor("ip", "restore") !== undefined;
  }

  /**
   * Programs one family after the other, each in one transaction. If one fails, undoes the previous ones. @throws
   * CniError 101
   */
  apply(sets: readonly RuleSet[]): void {
    const wanted = sets.map((set): Plan => {
      this.find(set.family, "restore");
      const saved = this.save(set.family);
      return { family: set.family, saved, text: restoreText(set, saved) };
    });
    const plans = [...wanted, ...this.removals(wanted)];
    for (const [done, { family, text }] of plans.entries()) {
      try {
        this.restore(family, text);
      } catch (error) {
        throw this.undo(plans.slice(0, done), error as CniError);
      }
    }
  }

  /** Removes the rules of families for which an earlier ADD programmed rules and this one does not. */
  private removals(wanted: readonly Plan[]): readonly Plan[] {
    if (!wanted.some(({ saved }) => hasChains(saved))) return [];
    const others = FAMILIES.filter((family) => !wanted.some((plan) => plan.family === family));
    return others
      .map((family) => ({ family, saved: this.saveIfPossible(family) }))
      .filter(({ saved }) => hasChains(saved))
      .map(({ family, saved }) => ({ family, saved, text: removalText(saved) }));
  }

  /** Undoes the transactions before a failure. Returns the failure, with those that could not be undone. */
  private undo(plans: readonly Plan[], failure: CniError): CniError {
    const left = plans.flatMap(({ family, saved }) => {
      try {
        this.restore(family, undoText(saved));
        return [];
      } catch (error) {
        return [`not undone: ${reasonOf(error)}`];
      }
    });
    if (left.length === 0) return failure;
    const { code, message, details } = failure;
    return new CniError(code, message, [details, ...left].join("\n"), { cause: failure });
  }

  /** Compares the rules with their descriptions, if the node has a program to list them. */
  compare(): Comparison {
    const saved = FAMILIES.map((family) => ({ family, text: this.saveIfPossible(family) })).filter(({ text }) =>
      hasChains(text),
    );
    const differences = saved.map(({ family, text }) => savedDifference(family, text));
    return { isThere: saved.length > 0, difference: differences.find((each) => each !== undefined) };
  }

  /** The nat table of a family; empty if the node has no program to list it. @throws CniError 101 if it is too long */
  private saveIfPossible(family: Family): string {
    const program = this.lookFor(family, "save");
    if (program === undefined) return "";
    const ran = runProgram(this.host, program, SAVE, "");
    return ran.isCut ? failed(program, SAVE, ran) : ran.stdout;
  }

  private restore(family: Family, text: string): void {
    // In mode auto the user did not choose iptables, and may not know its lock.
    const waits = this.linkerd["use-wait-flag"] || this.linkerd["iptables-mode"] === "auto";
    this.run(family, "restore", ["--noflush", ...(waits ? WAIT : [])], text);
  }

  private save(family: Family): string {
    return this.run(family, "save", SAVE, "");
  }

  private run(family: Family, action: "save" | "restore", args: readonly string[], input: string): string {
    const program = this.find(family, action);
    const ran = runProgram(this.host, program, args, input);
    return ran.status === 0 ? ran.stdout : failed(program, args, ran, input);
  }

  /** The possible names of a program; this mode's name is first. */
  private names(family: Family, action: string): readonly string[] {
    const names = [SUFFIX[this.mode], ""].map((suffix) => `${PROGRAM[family]}${suffix}-${action}`);
    return [...new Set(names)];
  }

  private lookFor(family: Family, action: string): string | undefined {
    for (const name of this.names(family, action)) {
      const path = findProgram(this.host, name);
      if (path !== undefined) return path;
    }
    return undefined;
  }

  private find(family: Family, action: string): string {
    const found = this.lookFor(family, action);
    if (found !== undefined) return found;
    const names = this.names(family, action);
    const missing = names.length > 1 ? `neither ${names.join(" nor ")}` : `no ${names[0]}`;
    const asked = this.linkerd["iptables-mode"];
    const remedy = asked === "auto" ? "" : "; mode native needs no program";
    throw new CniError(ErrorCode.rulesRefused, `iptables-mode ${asked}: the node has ${missing}${remedy}`);
  }
}
