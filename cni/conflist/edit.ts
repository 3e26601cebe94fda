import { sameJson } from "../json";
import { itemsOf, membersOf, type Place } from "../json-source";
import { isPlugin } from "../stanza";
import type { Config } from "./read";

type List = Extract<Config, { kind: "list" }>;
type Single = Extract<Config, { kind: "single" }>;

/** The plugin's stanza as JSON: every key is kept, known or not. */
export type StanzaJson = Readonly<Record<string, unknown>>;

/** A file with one character for each byte: what is not ours stays as it is, be it UTF-8 or not. */
function charactersOf(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return text;
}
const CHUNK = 4096;

function bytesOf(characters: string): Uint8Array {
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

/** Our JSON in such a text. */
const encoded = (json: string): string => charactersOf(new TextEncoder().encode(json));

const parsed = (characters: string) => JSON.parse(new TextDecoder().decode(bytesOf(characters)));

/** `plugins` and its items. */
function place(text: string): { readonly array: Place; readonly items: readonly Place[] } {
  const array = membersOf(text).findLast(({ key }) => key === "plugins");
  if (array === undefined) throw new Error(`a CNI configuration list without "plugins" is to be edited`);
  return { array, items: itemsOf(text, array) };
}

/** Removes item `index`, with the comma and the white space between it and its neighbour. */
function cut(text: string, index: number): string {
  const { array, items } = place(text);
  const [before, item, after] = [items[index - 1], items[index], items[index + 1]];
  if (item === undefined) return text;
  if (before !== undefined) return text.slice(0, before.end) + text.slice(item.end);
  if (after !== undefined) return text.slice(0, item.start) + text.slice(after.start);
  return text.slice(0, array.start + 1) + text.slice(array.end - 1);
}

function withoutStanza({ bytes, types }: List): string {
  const text = charactersOf(bytes);
  return types.reduceRight((rest, type, index) => (isPlugin(type) ? cut(rest, index) : rest), text);
}

/** The list without our stanza. All other bytes stay, so this undoes {@link chained} exactly. */
export function unchained(list: List): Uint8Array {
  return hasStanza(list) ? bytesOf(withoutStanza(list)) : list.bytes;
}

/** The white space before the last item, to follow the author's layout. */
function layout(text: string, array: Place, items: readonly Place[]): string {
  const last = items.at(-1);
  const before = items.at(-2);
  const gap = text.slice(before?.end ?? array.start + 1, last?.start ?? array.start + 1);
  return gap.slice(gap.indexOf(",") + 1);
}

function print(stanza: StanzaJson, space: string): string {
  const newline = space.lastIndexOf("\n");
  if (newline < 0) return JSON.stringify(stanza);
  return JSON.stringify(stanza, null, 2).replaceAll("\n", `\n${space.slice(newline + 1)}`);
}

/** The list with our stanza exactly once, and last. Every other byte stays. */
export function chained(list: List, stanza: StanzaJson): Uint8Array {
  if (isChained(list, stanza)) return list.bytes;
  const text = withoutStanza(list);
  const { array, items } = place(text);
  const end = items.at(-1)?.end ?? array.start + 1;
  const space = layout(text, array, items);
  const ours = `${items.length > 0 ? "," : ""}${space}${encoded(print(stanza, space))}`;
  return bytesOf(text.slice(0, end) + ours + text.slice(end));
}

/** Whether the list has exactly this stanza once, and last. */
export function isChained(list: List, stanza: StanzaJson): boolean {
  if (!hasStanza(list) || list.types.findIndex(isPlugin) !== list.types.length - 1) return false;
  const text = charactersOf(list.bytes);
  const last = place(text).items.at(-1);
  return last !== undefined && sameJson(parsed(text.slice(last.start, last.end)), stanza);
}

/** Whether the list contains our stanza. */
export function hasStanza(list: List): boolean {
  return list.types.some(isPlugin);
}

/** A list of one plugin's configuration and our stanza, as a runtime would convert that plugin to a list. */
export function listOf(single: Single, fallbackName: string, stanza: StanzaJson): Uint8Array {
  const version = single.cniVersion === "" ? "" : `  "cniVersion": ${JSON.stringify(single.cniVersion)},\n`;
  const name = JSON.stringify(single.name || fallbackName);
  const head = encoded(`{\n${version}  "name": ${name},\n  "plugins": [\n    `);
  return bytesOf(`${head}${charactersOf(single.bytes).trim()},\n    ${encoded(print(stanza, "\n    "))}\n  ]\n}\n`);
}
