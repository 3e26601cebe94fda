import { asciiText } from "../host/bytes";
import { Errno } from "../host/errno";
import { SUBSYSTEM } from "./batch";
import { attributes, messages, type Received } from "./codec";

const NEW_TABLE = SUBSYSTEM << 8;
const DELETE_TABLE = NEW_TABLE | 2;
const BATCH_TYPES = 0x10;
const EXCLUSIVE = 0x200;

/** An answer of netfilter: zero acknowledges. */
export function answer(sequence: number, errno: number): Uint8Array {
  const made = Buffer.alloc(36);
  made.writeUInt32LE(made.length, 0);
  made.writeUInt16LE(2, 4);
  made.writeUInt32LE(sequence, 8);
  made.writeInt32LE(errno === 0 ? 0 : -errno, 16);
  return new Uint8Array(made);
}

/** The tables of one network namespace, for tests: applies batches, and refuses what the real netfilter refuses. */
export class FakeNetfilter {
  private tables = new Set<string>();

  /** The answers to a datagram. It lists nothing. */
  exchange(datagram: Uint8Array): readonly Uint8Array[] {
    const [first] = [...messages(datagram)];
    if (first?.type !== BATCH_TYPES) return [answer(first?.sequence ?? 0, Errno.ENOENT)];
    const after = new Set(this.tables);
    const steps = [...messages(datagram)].filter(({ type }) => type > BATCH_TYPES + 1);
    for (const step of steps) {
      const failure = apply(step, after);
      if (failure !== 0) return [answer(step.sequence, failure)];
    }
    this.tables = after;
    return [answer(steps.length, 0)];
  }
}

function apply(step: Received, tables: Set<string>): number {
  const name = asciiText(attributes(step.payload.subarray(4)).get(1) ?? new Uint8Array(0));
  const key = `${step.payload[0]} ${name}`;
  if (step.type === NEW_TABLE && tables.has(key) && (step.flags & EXCLUSIVE) !== 0) return Errno.EEXIST;
  if (step.type === NEW_TABLE) tables.add(key);
  if (step.type === DELETE_TABLE && !tables.delete(key)) return Errno.ENOENT;
  return 0;
}
