import type { Colors } from "picocolors/types";
import { restoreText } from "../../cni/redirect/iptables";
import type { RedirectOptions } from "../../cni/redirect/options";
import { redirectRules } from "../../cni/redirect/rules";
import { aligned } from "../aligned";
import { hanging, indented } from "../wrap";
import type { PodDecision } from "./evidence";
import type { Explanation } from "./explanation";

const PROGRAMS = { ip: "iptables", ip6: "ip6tables" } as const;

/** The rules of both families as `iptables-restore` takes them. */
function rulesText(options: RedirectOptions): string {
  return redirectRules(options)
    .map((set) => `# ${PROGRAMS[set.family]}\n${restoreText(set, "")}`)
    .join("");
}

const paints: Readonly<Record<PodDecision["kind"], (colours: Colors) => (text: string) => string>> = {
  redirected: ({ green }) => green,
  "left alone": ({ yellow }) => yellow,
  "does not start": ({ red }) => red,
};

/** Options of the text for people. */
interface Display {
  /** Whether to append the rules. */
  readonly rules: boolean;
  readonly colours: Colors;
  /** Of the terminal. @default lines of any length */
  readonly columns?: number | undefined;
}

/** The settings in columns; on a narrow terminal, each origin is below its setting. */
function rowsText(rows: Explanation["rows"], { colours, columns }: Display): string {
  const text = aligned(rows.map(({ what, value, from }) => [`  ${what}`, value, from]));
  if (columns === undefined || text.split("\n").every((line) => line.length <= columns)) {
    return aligned(rows.map(({ what, value, from }) => [`  ${what}`, value, colours.dim(from)]));
  }
  const start = 4 + Math.max(...rows.map(({ what }) => what.length));
  const lines = rows.flatMap(({ what, value, from }) => [
    `  ${what}`.padEnd(start) + indented(value, start, columns).join("\n").slice(start),
    ...indented(from, start + 2, columns).map(colours.dim),
  ]);
  return `${lines.join("\n")}\n`;
}

/** An explanation for people. */
export function explanationText({ pod, verdict, outcome, rows, notes }: Explanation, display: Display): string {
  const { rules, colours, columns } = display;
  const { kind, because } = outcome;
  const code = kind === "does not start" ? `the plugin fails with code ${outcome.code}: ` : "";
  const said = `${pod}: ${verdict}: `;
  // Wrapped before colouring, because colours take no room.
  const head = hanging(said + code + because, 4, columns);
  const parts = [
    `${head.startsWith(said) ? `${colours.bold(pod)}: ${paints[kind](colours)(verdict)}: ${head.slice(said.length)}` : head}\n`,
    rows.length === 0 ? "" : rowsText(rows, display),
    notes.map((note) => `  ${colours.yellow("!")} ${indented(note, 4, columns).join("\n").slice(4)}\n`).join(""),
    rules && outcome.kind === "redirected" ? rulesText(outcome.options) : "",
  ];
  return parts.filter((part) => part !== "").join("\n");
}

/** Explanations of one owner's pods for people: equal ones, except for names, are printed once. */
export function groupedText(made: readonly Explanation[], display: Display): string {
  const groups = new Map<string, Explanation[]>();
  for (const each of made) {
    const text = explanationText(each, { ...display, columns: undefined }).replaceAll(each.pod, "");
    groups.set(text, [...(groups.get(text) ?? []), each]);
  }
  const texts = [...groups.values()].map(([first, ...others]) => {
    const text = explanationText(first as Explanation, display);
    const names = hanging(`  the same: ${others.map(({ pod }) => pod).join(", ")}`, 4, display.columns);
    return others.length === 0 ? text : `${text}\n${names}\n`;
  });
  return texts.join("\n");
}

/** An explanation for programs. */
export function explanationJson({ pod, verdict, outcome, rows, notes }: Explanation, rules: boolean): object {
  const { kind, because } = outcome;
  return {
    pod,
    outcome: verdict,
    because,
    ...(kind === "does not start" ? { code: outcome.code } : {}),
    ...(kind === "redirected" ? { settings: rows.map((row) => ({ ...row, what: row.what.trim() })) } : {}),
    ...(rules && kind === "redirected" ? { rules: rulesText(outcome.options) } : {}),
    notes,
  };
}
