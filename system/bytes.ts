/** Converts texts to bytes and back. */
export { base64, fromBase64 } from "../host/base64";
export { hex } from "../host/bytes";
export { equal } from "./crypto";

const encoder = new TextEncoder();
/** A byte order mark is part of the text. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The UTF-8 of a text; malformed parts become U+FFFD. */
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** Decodes UTF-8; invalid bytes become U+FFFD. */
export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);
