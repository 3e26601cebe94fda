/** TextEncoder and TextDecoder for UTF-8; URLSearchParams. */
import { concat } from "../../host/bytes";
import { host } from "./host";

/** The global TextEncoder. */
export class Encoder {
  readonly encoding = "utf-8";

  encode(text = ""): Uint8Array {
    return host.encode(String(text));
  }
}

const REPLACEMENT = "\ufffd";
const BYTE_ORDER_MARK = 0xfeff;
const NONE = new Uint8Array(0);

interface DecoderOptions {
  readonly fatal?: boolean;
  readonly ignoreBOM?: boolean;
}

/** Number of bytes at the end that begin an incomplete character. */
function unfinished(bytes: Uint8Array): number {
  for (let size = 1; size <= Math.min(3, bytes.length); size++) {
    const byte = bytes[bytes.length - size] as number;
    if (byte >= 0xc2 && byte <= 0xf4) return size < (byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4) ? size : 0;
    if (byte < 0x80 || byte > 0xbf) return 0;
  }
  return 0;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

function bytesOf(input: ArrayBuffer | ArrayBufferView): Uint8Array {
  if (input instanceof Uint8Array) return input;
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  return new Uint8Array(input);
}

/** The global TextDecoder. */
export class Decoder {
  readonly encoding = "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  private rest = NONE;
  private hasBegun = false;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false }: DecoderOptions = {}) {
    if (!/^\s*utf-?8\s*$/i.test(label)) throw new RangeError(`The "${label}" encoding is not supported`);
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }

  /**
   * The text of bytes. With `stream`, an incomplete character is kept for the next call. @throws TypeError for invalid
   * UTF-8, if `fatal`
   */
  decode(input: ArrayBuffer | ArrayBufferView = NONE, { stream = false } = {}): string {
    const given = bytesOf(input);
    const all = this.rest.length === 0 ? given : concat([this.rest, given]);
    const kept = stream ? unfinished(all) : 0;
    this.rest = all.slice(all.length - kept);
    const bytes = all.subarray(0, all.length - kept);
    const text = host.decode(bytes);
    const isBroken = this.fatal && text.includes(REPLACEMENT) && !isSame(host.encode(text), bytes);
    const hasMark = !this.ignoreBOM && !this.hasBegun && text.charCodeAt(0) === BYTE_ORDER_MARK;
    this.hasBegun = stream && (this.hasBegun || text !== "");
    if (isBroken) {
      this.rest = NONE;
      this.hasBegun = false;
      throw new TypeError("The encoded data was not valid for encoding utf-8");
    }
    return hasMark ? text.slice(1) : text;
  }
}

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
