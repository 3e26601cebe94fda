/** The part of protocol buffers that NRI needs: messages of numbers, texts, messages and maps of texts. */
import { concat } from "../host/bytes";
import type { Host } from "../host/port";

/** Bytes that violate the protocol. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** Encoder and decoder of texts. */
export type Texts = Pick<Host, "encode" | "decode">;

const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
/** Maximum bytes of a 64-bit number. */
const LONGEST_VARINT = 10;
/** Numbers below it take one byte. */
const ONE_BYTE = 0x80;
/** An entry of a map begins with its key, field 1. */
const KEY_FIRST = 8 + WIRE.bytes;
const EMPTY = new Uint8Array(0);

/** The wanted keys of a map. The length of a key rules out most others at almost no cost. */
export class Keys {
  /** By a key's length in bytes: 0 if no wanted key has it. */
  private readonly lengths = new Uint8Array(2 * ONE_BYTE).fill(1, ONE_BYTE);
  private readonly keys: ReadonlySet<string>;

  /** @param keys ASCII, of fewer than 128 characters */
  constructor(keys: readonly string[]) {
    this.keys = new Set(keys);
    for (const { length } of keys) this.lengths[length] = 1;
  }

  /**
   * Skips short entries whose keys have other lengths. One loop without calls: an entry takes 0.1 µs. @param field the
   * first byte of each of these fields @returns the offset of the next field
   */
  skip(bytes: Uint8Array, begin: number, field: number): number {
    const { lengths } = this;
    const ofKey = KEY_FIRST;
    let at = begin;
    // Beyond the end the value is undefined, which does not match.
    for (let size: number; bytes[at] === field; at += size + 2) {
      size = bytes[at + 1] as number;
      if (!(size < 0x80 && bytes[at + 2] === ofKey && lengths[bytes[at + 3] as number] === 0)) break;
    }
    return at;
  }

  /** Whether an entry may have a wanted key, which every encoder writes first. */
  mayHave(bytes: Uint8Array, entry: number, { decode }: Texts): boolean {
    const length = bytes[entry + 1] ?? 0;
    if (bytes[entry] !== KEY_FIRST || length >= ONE_BYTE) return true;
    return this.lengths[length] !== 0 && this.has(decode(bytes.subarray(entry + 2, entry + 2 + length)));
  }

  has(key: string): boolean {
    return this.keys.has(key);
  }
}

/** The wanted fields of a message, by number: a whole field, or the entries of a map with some keys. */
export type Wanted = readonly (true | Keys | undefined)[];

/** Wants whole fields. */
export function whole(...fields: readonly number[]): Wanted {
  const wanted: (true | undefined)[] = [];
  for (const field of fields) wanted[field] = true;
  return wanted;
}

/**
 * Reads one message and skips unwanted fields, of which a client may have sent a hundred thousand. Numbers beyond 2^53
 * lose precision; the fields read here have none.
 */
export class Message {
  private readonly numbers = new Map<number, number>();
  private readonly parts = new Map<number, Uint8Array[]>();
  private readonly maps = new Map<number, Record<string, string>>();

  /** @param wanted the fields to keep. @default all fields @throws ProtocolError */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly texts: Texts,
    private readonly wanted?: Wanted,
  ) {
    const { length } = bytes;
    for (let at = 0; at < length; ) {
      if (wanted !== undefined) at = this.skipShort(wanted, at);
      if (at < length) at = this.readField(at);
    }
  }

  /** A number; 0 if absent. */
  number(field: number): number {
    return this.numbers.get(field) ?? 0;
  }

  /** The bytes of a field; if it is repeated, the last. */
  data(field: number): Uint8Array {
    return this.parts.get(field)?.at(-1) ?? EMPTY;
  }

  /** The bytes of a repeated field, in order. */
  all(field: number): readonly Uint8Array[] {
    return this.parts.get(field) ?? [];
  }

  text(field: number): string {
    return this.texts.decode(this.data(field));
  }

  /** @throws ProtocolError */
  message(field: number): Message {
    return new Message(this.data(field), this.texts);
  }

  /** A repeated field of messages. @throws ProtocolError */
  messages(field: number): readonly Message[] {
    return this.all(field).map((each) => new Message(each, this.texts));
  }

  /** The wanted entries of a map of texts. */
  map(field: number): Readonly<Record<string, string>> {
    return this.maps.get(field) ?? {};
  }

  /**
   * Skips unwanted fields whose number and length take one byte each, as most do. @returns the offset of the next field
   * to read, or the end
   */
  private skipShort(wanted: Wanted, begin: number): number {
    const { bytes, texts } = this;
    let at = begin;
    while (at < bytes.length) {
      const key = bytes[at] ?? 0;
      const size = bytes[at + 1] ?? ONE_BYTE;
      if (key >= ONE_BYTE || size >= ONE_BYTE || (key & 7) !== WIRE.bytes) return at;
      const keep = wanted[key >> 3];
      if (keep === true) return at;
      if (keep !== undefined) {
        const next = keep.skip(bytes, at, key);
        if (next === at && keep.mayHave(bytes, at + 2, texts)) return at;
        at = next === at ? at + 2 + size : next;
      } else {
        at += 2 + size;
      }
    }
    return this.within(at);
  }

  /** Reads a field, and returns the offset of the next one. */
  private readField(begin: number): number {
    const [key, at] = this.varint(begin);
    const field = Math.floor(key / 8);
    switch (key % 8) {
      case WIRE.varint: {
        const [value, end] = this.varint(at);
        this.numbers.set(field, value);
        return end;
      }
      case WIRE.bytes: {
        const [length, start] = this.varint(at);
        const end = this.within(start + length);
        this.keep(field, start, end);
        return end;
      }
      case WIRE.fixed64:
        return this.within(at + 8);
      case WIRE.fixed32:
        return this.within(at + 4);
      default:
        throw new ProtocolError(`a field of type ${key % 8} at byte ${begin} of a message`);
    }
  }

  private keep(field: number, start: number, end: number): void {
    const keep = this.wanted === undefined ? true : this.wanted[field];
    if (keep === undefined) return;
    if (keep !== true) {
      if (keep.mayHave(this.bytes, start, this.texts)) this.keepEntry(field, keep, this.bytes.subarray(start, end));
      return;
    }
    const part = this.bytes.subarray(start, end);
    const known = this.parts.get(field);
    if (known === undefined) this.parts.set(field, [part]);
    else known.push(part);
  }

  private keepEntry(field: number, keys: Keys, bytes: Uint8Array): void {
    const entry = new Message(bytes, this.texts);
    const key = entry.text(1);
    if (!keys.has(key)) return;
    const known = this.maps.get(field) ?? {};
    known[key] = entry.text(2);
    this.maps.set(field, known);
  }

  private within(end: number): number {
    if (end > this.bytes.length) throw new ProtocolError("a message ends within a field");
    return end;
  }

  private varint(begin: number): readonly [value: number, end: number] {
    let value = 0;
    let scale = 1;
    for (let at = begin; at < begin + LONGEST_VARINT; at++) {
      const byte = this.bytes[at];
      if (byte === undefined) throw new ProtocolError("a message ends within a number");
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return [value, at + 1];
      scale *= 0x80;
    }
    throw new ProtocolError("a number of more than 64 bits");
  }
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Uint8Array.from([...bytes, rest]);
}

/** A field with a number; an absent field means 0. */
export function numberField(field: number, value: number): Uint8Array {
  return value === 0 ? EMPTY : concat([varint(field * 8 + WIRE.varint), varint(value)]);
}

/** A field with bytes: a text, or another message. */
export function bytesField(field: number, value: Uint8Array): Uint8Array {
  return concat([varint(field * 8 + WIRE.bytes), varint(value.length), value]);
}
