/** TextEncoder and TextDecoder for UTF-8; URLSearchParams. */
import { host } from "./host";

/** The global TextEncoder. */
export class Encoder {
  encode(text = ""): Uint8Array {
    return host.encode(String(text));
  }
}

const BYTE_ORDER_MARK = 0xfeff;

/** The global TextDecoder, for whole texts; malformed parts become U+FFFD. */
export class Decoder {
  constructor(
    _label = "utf-8",
    private readonly options: { readonly ignoreBOM?: boolean } = {},
  ) {}

  decode(bytes: Uint8Array): string {
    const text = host.decode(bytes);
    return !this.options.ignoreBOM && text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
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
  constructor(private readonly entries: Readonly<Record<string, string>>) {}

  toString(): string {
    return Object.entries(this.entries)
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .join("&");
  }
}
