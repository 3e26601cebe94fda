import type { Colors } from "picocolors/types";
import { aligned } from "../aligned";
import { indented } from "../wrap";
import type { Finding } from "./finding";

const SIGNS = { success: "√", warning: "‼", error: "×" } as const;

const PAINTS = {
  success: ({ green }: Colors) => green,
  warning: ({ yellow }: Colors) => yellow,
  error: ({ red }: Colors) => red,
} as const;

const isBad = ({ result }: Finding) => result === "error";

/** Whether no check failed; warnings do not count. */
export const succeeded = (findings: readonly Finding[]): boolean => !findings.some(isBad);

function byCategory(findings: readonly Finding[]): readonly (readonly [string, readonly Finding[]])[] {
  const names = [...new Set(findings.map(({ category }) => category))];
  return names.map((name) => [name, findings.filter(({ category }) => category === name)] as const);
}

function explained({ problem, remedy = "", link }: Finding, colours: Colors, columns?: number): readonly string[] {
  if (problem === undefined) return [];
  return [...indented(problem, 4, columns), ...indented(remedy, 4, columns), `    ${colours.dim(`see ${link}`)}`];
}

/** The lines of the findings, each with its detail beside it, or below it on a narrow terminal. */
function linesOf(findings: readonly Finding[], colours: Colors, columns: number | undefined): readonly string[] {
  const sign = ({ result }: Finding) => PAINTS[result](colours)(SIGNS[result]);
  const needed = (part: (finding: Finding) => string) => Math.max(0, ...findings.map((each) => part(each).length));
  const width = 2 + needed(({ what }) => what) + 2 + needed(({ detail = "" }) => detail);
  if (columns === undefined || width <= columns) {
    const rows = findings.map((finding) => [
      `${sign(finding)} ${finding.what}`,
      ...(finding.detail === undefined ? [] : [colours.dim(finding.detail)]),
    ]);
    return aligned(rows).split("\n");
  }
  return findings.map((finding) => {
    const what = indented(finding.what, 2, columns).join("\n").slice(2);
    const details = finding.detail === undefined ? [] : indented(finding.detail, 4, columns).map(colours.dim);
    return [`${sign(finding)} ${what}`, ...details].join("\n");
  });
}

/**
 * A report for people, in the form of linkerd's checks.
 * @param columns of the terminal. @default lines of any length
 */
export function reportText(findings: readonly Finding[], colours: Colors, columns?: number): string {
  const lines = linesOf(findings, colours, columns);
  const lineOf = new Map(findings.map((finding, index) => [finding, lines[index] ?? ""] as const));
  const sections = byCategory(findings).map(([name, own]) =>
    [
      colours.bold(name),
      "-".repeat(name.length),
      ...own.flatMap((finding) => [lineOf.get(finding) ?? "", ...explained(finding, colours, columns)]),
      "",
    ].join("\n"),
  );
  const failed = findings.filter(isBad).length;
  const result = failed === 0 ? PAINTS.success(colours)(SIGNS.success) : PAINTS.error(colours)(SIGNS.error);
  return [...sections, `Status check results are ${result}${failed === 0 ? "" : `: ${failed} failed`}`, ""].join("\n");
}

/** A report for programs, with the fields of linkerd's report. @param values to install with */
export function reportJson(findings: readonly Finding[], values?: Readonly<Record<string, string>>): string {
  const categories = byCategory(findings).map(([categoryName, own]) => ({
    categoryName,
    checks: own.map(({ what, result, detail, problem, remedy, link }) => ({
      description: what,
      result,
      ...(detail === undefined ? {} : { detail }),
      ...(problem === undefined ? {} : { error: problem, remedy, hint: link }),
    })),
  }));
  return `${JSON.stringify({ success: succeeded(findings), categories, ...(values && { values }) }, undefined, 2)}\n`;
}
