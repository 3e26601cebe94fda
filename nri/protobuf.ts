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
const EMPTY = new Uint8Array(0);

/** The wanted keys of a map. Most others are ruled out by their length, without decoding them. */
export class Keys {
  private readonly keys: ReadonlySet<string>;
  private readonly lengths: ReadonlySet<number>;

  /** @param keys ASCII */
  constructor(keys: readonly string[]) {
    this.keys = new Set(keys);
    this.lengths = new Set(keys.map(({ length }) => length));
  }

  /** The key in the current field, if it is wanted. */
  read(field: Fields): string | undefined {
    if (!this.lengths.has(field.size)) return undefined;
    const key = field.text();
    return this.keys.has(key) ? key : undefined;
  }
}

/**
 * Visits the fields of a message, in order. Copies none: a client may have sent a hundred thousand that are not wanted.
 */
export class Fields {
  /** The number of the current field. */
  field = 0;
  /** Its value, if it is a number. Numbers beyond 2^53 lose precision; the fields read here have none. */
  number = 0;
  /** Its bytes begin here, and end where the next field begins. */
  private begin = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly texts: Texts,
    private at = 0,
    private readonly end: number = bytes.length,
  ) {}

  /** Moves to the next field; false at the end. @throws ProtocolError */
  next(): boolean {
    if (this.at >= this.end) return false;
    const key = this.varint();
    this.field = Math.floor(key / 8);
    this.number = key % 8 === WIRE.varint ? this.varint() : 0;
    const size = this.sizeOf(key % 8);
    this.begin = this.at;
    this.at += size;
    if (this.at > this.end) throw new ProtocolError("a message ends within a field");
    return true;
  }

  /** Number of bytes of the current field's value. */
  get size(): number {
    return this.at - this.begin;
  }

  data(): Uint8Array {
    return this.bytes.subarray(this.begin, this.at);
  }

  text(): string {
    return this.texts.decode(this.data());
  }

  /** The fields of the message in this field. */
  fields(): Fields {
    return new Fields(this.bytes, this.texts, this.begin, this.at);
  }

  /** Adds this field, an entry of a map of texts, if its key is wanted. @throws ProtocolError */
  addTo(map: Record<string, string>, keys: Keys): void {
    const entry = this.fields();
    let key: string | undefined;
    let value = "";
    while (entry.next()) {
      if (entry.field === 1) {
        key = keys.read(entry);
        if (key === undefined) return;
      } else if (entry.field === 2) value = entry.text();
    }
    if (key !== undefined) map[key] = value;
  }

  private sizeOf(type: number): number {
    switch (type) {
      case WIRE.varint:
        return 0;
      case WIRE.bytes:
        return this.varint();
      case WIRE.fixed64:
        return 8;
      case WIRE.fixed32:
        return 4;
      default:
        throw new ProtocolError(`a field of type ${type} before byte ${this.at} of a message`);
    }
  }

  private varint(): number {
    let value = 0;
    let scale = 1;
    for (let digit = 0; digit < LONGEST_VARINT; digit++) {
      if (this.at >= this.end) throw new ProtocolError("a message ends within a number");
      const byte = this.bytes[this.at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
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
