/**
 * A rule's description in its user data, after the comment: its position, and its content in the words of describe.ts.
 * CHECK compares the rules with it, so it needs neither the pod nor the API server.
 */
import { ascii, asciiText } from "../host/bytes";

export interface Mark {
  /** The rule's position in its chain, from 1, and the number of rules that ADD programmed there. */
  readonly index: number;
  readonly count: number;
  /** Number of address families that ADD programmed. */
  readonly families: number;
  readonly words: string;
}

/** A type that libnftnl ignores. A new layout of the text needs a new type. */
const MARK_TYPE = 0x4c;
const HEADER = 2;
/** NFT_USERDATA_MAXLEN of the kernel. */
const MAX_USERDATA = 256;

/** @param used bytes of the user data already in use; a description that does not fit is omitted */
export function encodeMark({ index, count, families, words }: Mark, used: number): Uint8Array {
  const text = `${index}/${count}/${families} ${words}`;
  if (used + HEADER + text.length > MAX_USERDATA) return new Uint8Array(0);
  const made = new Uint8Array(HEADER + text.length);
  made[0] = MARK_TYPE;
  made[1] = text.length;
  made.set(ascii(text), HEADER);
  return made;
}

const LAYOUT = /^(\d+)\/(\d+)\/(\d+) (.*)$/;

/** The mark in a rule's user data; undefined if absent. */
export function decodeMark(userdata: Uint8Array): Mark | undefined {
  for (let at = 0; at + HEADER <= userdata.length; ) {
    const [type, length = 0] = userdata.subarray(at, at + HEADER);
    const found =
      type === MARK_TYPE ? LAYOUT.exec(asciiText(userdata.subarray(at + HEADER, at + HEADER + length))) : null;
    if (found !== null) {
      const [, index, count, families, words = ""] = found;
      return { index: Number(index), count: Number(count), families: Number(families), words };
    }
    at += HEADER + length;
  }
  return undefined;
}
