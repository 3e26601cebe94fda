import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { findProgram } from "./helm";

/** The real promtool, if installed. */
export const promtool = findProgram("promtool", process.env["PROMTOOL"]);

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

type Files = Readonly<Record<string, unknown>>;

/** Runs promtool in a directory. @returns its output @throws an Error with its output if it fails */
function run(args: readonly string[], files: Files): string {
  const cwd = mkdtempSync(join(tmpdir(), "promtool-"));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), stringify(content));
    return execFileSync(promtool ?? "", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`promtool ${args.join(" ")}:\n${stdout}${stderr}`);
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** Checks rules with promtool. */
export const checkRules = (rules: RuleFile): string =>
  run(["check", "rules", "--lint=all", "--lint-fatal", "rules.yml"], { "rules.yml": rules });

/** Problems that promtool finds in a process's metrics. @throws if it cannot read them */
export function checkMetrics(exposed: string): readonly string[] {
  const { status, stderr } = spawnSync(promtool ?? "", ["check", "metrics"], { input: exposed, encoding: "utf8" });
  if (status !== 0 && status !== 3) throw new Error(`promtool check metrics: ${stderr}`);
  return stderr
    .trim()
    .split("\n")
    .filter((line) => line !== "");
}

/** The input of an alert, one sample per minute, and its expected result at a minute. */
interface Situation {
  readonly alert: string;
  /** In promtool's notation: `0+1x20`, `_x5 3x10`. */
  readonly series: Readonly<Record<string, string>>;
  readonly atMinute: number;
  readonly says: readonly {
    readonly exp_labels: Readonly<Record<string, string>>;
    readonly exp_annotations: Readonly<Record<string, string>>;
  }[];
}

/** Tests whether the rules' alerts fire. */
export function testRules(rules: RuleFile, { alert, series, atMinute, says }: Situation): string {
  const test = {
    rule_files: ["rules.yml"],
    evaluation_interval: "1m",
    tests: [
      {
        interval: "1m",
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        alert_rule_test: [{ eval_time: `${atMinute}m`, alertname: alert, exp_alerts: says }],
      },
    ],
  };
  return run(["test", "rules", "test.yml"], { "rules.yml": rules, "test.yml": test });
}
