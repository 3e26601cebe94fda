import type { Colors } from "picocolors/types";
import { restoreText } from "../../cni/redirect/iptables";
import type { RedirectOptions } from "../../cni/redirect/options";
import { redirectRules } from "../../cni/redirect/rules";
import { aligned } from "../aligned";
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
}

/** An explanation for people. */
export function explanationText({ pod, verdict, outcome, rows, notes }: Explanation, display: Display): string {
  const { rules, colours } = display;
  const { kind, because } = outcome;
  const code = kind === "does not start" ? `the plugin fails with code ${outcome.code}: ` : "";
  const parts = [
    `${colours.bold(pod)}: ${paints[kind](colours)(verdict)}: ${code}${because}\n`,
    aligned(rows.map(({ what, value, from }) => [`  ${what}`, value, colours.dim(from)])),
    notes.map((note) => `  ${colours.yellow("!")} ${note}\n`).join(""),
    rules && outcome.kind === "redirected" ? rulesText(outcome.options) : "",
  ];
  return parts.filter((part) => part !== "").join("\n");
}

/** Explanations of one owner's pods for people: equal ones, except for names, are printed once. */
export function groupedText(made: readonly Explanation[], display: Display): string {
  const groups = new Map<string, Explanation[]>();
  for (const each of made) {
    const text = explanationText(each, display).replaceAll(each.pod, "");
    groups.set(text, [...(groups.get(text) ?? []), each]);
  }
  const texts = [...groups.values()].map(([first, ...others]) => {
    const text = explanationText(first as Explanation, display);
    return others.length === 0 ? text : `${text}\n  the same: ${others.map(({ pod }) => pod).join(", ")}\n`;
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
