import { host } from "./host";

/** Encodes a form or a query: only `*`, `-`, `.`, `_`, letters and digits stay as they are. */
function encoded(text: string): string {
  const percent = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  const wellFormed = host.decode(host.encode(text));
  return encodeURIComponent(wellFormed)
    .replace(/[!'()~]/g, percent)
    .replaceAll("%20", "+");
}

/** The global URLSearchParams, as far as programs use it: parameters of a request, to be sent. */
export class SearchParams {
  private readonly entries: (readonly [string, string])[];

  constructor(entries: Readonly<Record<string, string>> | Iterable<readonly [string, string]> = []) {
    const pairs =
      Symbol.iterator in entries ? (entries as Iterable<readonly [string, string]>) : Object.entries(entries);
    this.entries = Array.from(pairs, ([name, value]) => [String(name), String(value)]);
  }

  append(name: string, value: string): void {
    this.entries.push([String(name), String(value)]);
  }

  set(name: string, value: string): void {
    const at = this.entries.findIndex(([known]) => known === name);
    const others = this.entries.filter(([known], index) => known !== name || index === at);
    if (at < 0) others.push([name, String(value)]);
    else others[at] = [name, String(value)];
    this.entries.splice(0, this.entries.length, ...others);
  }

  toString(): string {
    return this.entries.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
  }
}
