import { PLUGIN_TYPE } from "../stanza";
import { sameJson } from "./equal";
import type { Config } from "./read";
import { type ArrayPlace, findArray } from "./scan";

type List = Extract<Config, { kind: "list" }>;
type Single = Extract<Config, { kind: "single" }>;

/** The plugin's stanza as JSON: every key is kept, known or not. */
export type StanzaJson = Readonly<Record<string, unknown>>;

function place(text: string): ArrayPlace {
  const found = findArray(text, "plugins");
  if (found === undefined) throw new Error(`a CNI configuration list without "plugins" passed as valid`);
  return found;
}

/** Removes item `index`, with the comma and the white space between it and its neighbour. */
function cut(text: string, index: number): string {
  const { open, close, items } = place(text);
  const [before, item, after] = [items[index - 1], items[index], items[index + 1]];
  if (item === undefined) return text;
  if (before !== undefined) return text.slice(0, before.end) + text.slice(item.end);
  if (after !== undefined) return text.slice(0, item.start) + text.slice(after.start);
  return text.slice(0, open) + text.slice(close);
}

/** The list without our stanza. All other bytes stay, so this undoes {@link chained} exactly. */
export function unchained(list: List): string {
  return list.types.reduceRight((text, type, index) => (type === PLUGIN_TYPE ? cut(text, index) : text), list.text);
}

/** The white space before the last item, to follow the author's layout. */
function layout(text: string, { open, items }: ArrayPlace): string {
  const last = items.at(-1);
  const before = items.at(-2);
  const gap = text.slice(before?.end ?? open, last?.start ?? open);
  return gap.slice(gap.indexOf(",") + 1);
}

function print(stanza: StanzaJson, space: string): string {
  const newline = space.lastIndexOf("\n");
  if (newline < 0) return JSON.stringify(stanza);
  return JSON.stringify(stanza, null, 2).replaceAll("\n", `\n${space.slice(newline + 1)}`);
}

/** The list's text with our stanza exactly once, and last. Every other byte stays. */
export function chained(list: List, stanza: StanzaJson): string {
  if (isChained(list, stanza)) return list.text;
  const text = unchained(list);
  const array = place(text);
  const end = array.items.at(-1)?.end ?? array.open;
  const space = layout(text, array);
  return `${text.slice(0, end)}${array.items.length > 0 ? "," : ""}${space}${print(stanza, space)}${text.slice(end)}`;
}

/** Whether the list has exactly this stanza once, and last. */
export function isChained(list: List, stanza: StanzaJson): boolean {
  if (list.types.indexOf(PLUGIN_TYPE) !== list.types.length - 1) return false;
  const last = place(list.text).items.at(-1);
  return last !== undefined && sameJson(JSON.parse(list.text.slice(last.start, last.end)), stanza);
}

/** Whether the list contains our stanza. */
export function hasStanza(list: List): boolean {
  return list.types.includes(PLUGIN_TYPE);
}

/**
 * Whether linkerd's installer probably made this list from a single plugin's file: it sets this name and version, keeps
 * nothing else in the list, and removes the file.
 */
export function isRenamed(list: List): boolean {
  const { name, cniVersion, plugins, ...others } = JSON.parse(list.text);
  const forced = name === "k8s-pod-network" && cniVersion === "0.3.1" && Object.keys(others).length === 0;
  return forced && list.types.at(-1) === PLUGIN_TYPE && plugins.length === 2 && typeof plugins[0].name === "string";
}

/** A list of one plugin's configuration and our stanza, as a runtime would convert that plugin to a list. */
export function listOf(single: Single, fallbackName: string, stanza: StanzaJson): string {
  const version = single.cniVersion === undefined ? "" : `  "cniVersion": ${JSON.stringify(single.cniVersion)},\n`;
  const name = JSON.stringify(single.name ?? fallbackName);
  const plugins = `    ${single.text.trim()},\n    ${print(stanza, "\n    ")}`;
  return `{\n${version}  "name": ${name},\n  "plugins": [\n${plugins}\n  ]\n}\n`;
}
