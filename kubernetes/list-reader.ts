import { Gathered, MAX_BODY } from "../system/http/message";
import type { List } from "./client";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** How deep the items are: within the list's object and its array. */
const ITEMS_DEPTH = 2;
/** The end of what precedes the items. A quote within a key has a backslash before it. */
const ITEMS_KEY = /[{,]\s*"items"\s*:\s*\[$/;
/** Bytes in which the key is looked for. */
const KEY_BYTES = 64;
const BLANK = /^[ \t\r\n]*$/;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads a list as it arrives, item by item: the API server's cache answers with all objects at once, and they may be
 * many times larger than what is kept of them. Finds only where an item ends; JSON.parse judges it, and the rest.
 */
export class ListReader<T> {
  /** The current item. */
  private readonly item = new Gathered();
  /** The list without its items. */
  private readonly rest = new Gathered();
  private depth = 0;
  private isInItems = false;
  /** Whether an item must follow, since a comma precedes it. */
  private isAfterComma = false;
  private isInString = false;
  /** Whether a backslash precedes the next byte of a string. */
  private isEscaped = false;

  /** The items that end in the next bytes. @throws SyntaxError for an item that is not JSON, Error if one is too large */
  *read(bytes: Uint8Array): Generator<T> {
    let start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.isInString) {
        at = this.endOfString(bytes, at);
        continue;
      }
      switch (bytes[at]) {
        case QUOTE:
          this.isInString = true;
          break;
        case OPEN_LIST:
        case OPEN_OBJECT:
          this.depth += 1;
          if (this.depth !== ITEMS_DEPTH || bytes[at] !== OPEN_LIST) break;
          this.rest.add(bytes.subarray(start, at + 1));
          start = at + 1;
          this.isInItems = ITEMS_KEY.test(decoder.decode(this.rest.bytes.subarray(-KEY_BYTES)));
          break;
        case COMMA:
          if (!this.isInItems || this.depth !== ITEMS_DEPTH) break;
          this.item.add(bytes.subarray(start, at));
          start = at + 1;
          this.isAfterComma = true;
          yield this.parsed();
          break;
        case CLOSE_LIST:
        case CLOSE_OBJECT:
          this.depth -= 1;
          if (!this.isInItems || this.depth !== ITEMS_DEPTH - 1) break;
          this.item.add(bytes.subarray(start, at));
          start = at;
          this.isInItems = false;
          if (this.isAfterComma || !BLANK.test(decoder.decode(this.item.bytes))) yield this.parsed();
          this.item.take();
          this.isAfterComma = false;
          break;
      }
    }
    const part = this.isInItems ? this.item : this.rest;
    part.add(bytes.subarray(start));
    if (part.size > MAX_BODY) throw new Error(`an object of the list has more than ${MAX_BODY} bytes`);
  }

  /** The list without the items that were read. @throws SyntaxError if it is not whole */
  end(): List<T> {
    return JSON.parse(decoder.decode(this.rest.take())) as List<T>;
  }

  private parsed(): T {
    return JSON.parse(decoder.decode(this.item.take())) as T;
  }

  /** The index of the quote that ends the current string, or of the last byte. */
  private endOfString(bytes: Uint8Array, start: number): number {
    for (let from = start; ; ) {
      const quote = bytes.indexOf(QUOTE, from);
      const end = quote < 0 ? bytes.length : quote;
      let first = end;
      while (first > start && bytes[first - 1] === BACKSLASH) first -= 1;
      const isEscaped = ((end - first) % 2 === 1) !== (first === start && this.isEscaped);
      if (quote < 0 || !isEscaped) {
        this.isEscaped = quote < 0 && isEscaped;
        this.isInString = quote < 0;
        return quote < 0 ? bytes.length : quote;
      }
      from = quote + 1;
    }
  }
}
