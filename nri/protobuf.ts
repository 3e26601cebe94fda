/** Protocol buffers, as far as NRI needs them: messages of numbers, texts, messages and maps of texts. */
import { concat } from "../host/bytes";
import type { Host } from "../host/port";

/** Bytes that are not what the protocol says. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** How texts become bytes, and bytes texts. */
export type Texts = Pick<Host, "encode" | "decode">;

const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
/** A number of 64 bits takes so many bytes. */
const LONGEST_VARINT = 10;
const EMPTY = new Uint8Array(0);

/** Reads one message. A number beyond 2^53 loses digits: no field that is read here has one. */
export class Message {
  private readonly numbers = new Map<number, number>();
  private readonly parts = new Map<number, Uint8Array[]>();

  /** @throws ProtocolError */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly texts: Texts,
  ) {
    for (let at = 0; at < bytes.length; ) at = this.readField(at);
  }

  /** A number; 0 where there is none. */
  number(field: number): number {
    return this.numbers.get(field) ?? 0;
  }

  /** The bytes of a field; where it is repeated, the last. */
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

  /** A map of texts. @throws ProtocolError */
  map(field: number): Readonly<Record<string, string>> {
    return Object.fromEntries(this.messages(field).map((entry) => [entry.text(1), entry.text(2)]));
  }

  /** Reads a field, and gives where the next one begins. */
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
        const part = this.bytes.subarray(start, end);
        const known = this.parts.get(field);
        if (known === undefined) this.parts.set(field, [part]);
        else known.push(part);
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

/** A field with a number; 0 is what an absent one means. */
export function numberField(field: number, value: number): Uint8Array {
  return value === 0 ? EMPTY : concat([varint(field * 8 + WIRE.varint), varint(value)]);
}

/** A field with bytes: a text, or another message. */
export function bytesField(field: number, value: Uint8Array): Uint8Array {
  return concat([varint(field * 8 + WIRE.bytes), varint(value.length), value]);
}
