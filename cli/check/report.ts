import type { Colors } from "picocolors/types";
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

function explained({ problem, remedy = "", link }: Finding, colours: Colors): readonly string[] {
  if (problem === undefined) return [];
  return [`    ${problem}`, `    ${remedy}`, `    ${colours.dim(`see ${link}`)}`];
}

/** A finding and its detail, without the explanation. */
function lineOf({ what, detail, result }: Finding, colours: Colors): string {
  return `${PAINTS[result](colours)(SIGNS[result])} ${what}${detail === undefined ? "" : `: ${detail}`}`;
}

/** A report for people, in the form of linkerd's checks. */
export function reportText(findings: readonly Finding[], colours: Colors): string {
  const sections = byCategory(findings).map(([name, own]) =>
    [
      colours.bold(name),
      "-".repeat(name.length),
      ...own.flatMap((finding) => [lineOf(finding, colours), ...explained(finding, colours)]),
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
