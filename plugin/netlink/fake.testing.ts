import { Errno, SystemError } from "../system-error";
import { SUBSYSTEM } from "./batch";
import { attributes, messages, type Received } from "./codec";
import type { Kernel } from "./port";

const NEW_TABLE = SUBSYSTEM << 8;
const DELETE_TABLE = NEW_TABLE | 2;
const BATCH_TYPES = 0x10;
const EXCLUSIVE = 0x200;
const FLAGS_AT = 6;

/** An answer as netfilter gives it: zero acknowledges. */
export function answer(sequence: number, errno: number): Buffer {
  const made = Buffer.alloc(36);
  made.writeUInt32LE(made.length, 0);
  made.writeUInt16LE(2, 4);
  made.writeUInt32LE(sequence, 8);
  made.writeInt32LE(errno === 0 ? 0 : -errno, 16);
  return made;
}

/** A kernel for tests: knows namespaces by path and the tables in each, and refuses what the real one refuses. */
export class FakeKernel implements Kernel {
  /** Every datagram that was sent, and where. */
  readonly sent: { readonly namespace: string; readonly datagram: Uint8Array }[] = [];
  private readonly tables = new Map<string, Set<string>>();
  private current = "own";

  constructor(namespaces: readonly string[]) {
    for (const path of namespaces) this.tables.set(path, new Set());
  }

  enterNamespace(path: string): void {
    if (!this.tables.has(path)) throw new SystemError(`open ${path}`, Errno.ENOENT);
    this.current = path;
  }

  exchange(datagram: Uint8Array): readonly Uint8Array[] {
    this.sent.push({ namespace: this.current, datagram });
    const isDump = [...messages(datagram)][0]?.type !== BATCH_TYPES;
    if (isDump) return [];
    const before = this.tables.get(this.current) ?? new Set();
    const after = new Set(before);
    const steps = [...messages(datagram)].filter(({ type }) => type > BATCH_TYPES + 1);
    for (const step of steps) {
      const failure = this.apply(step, after, flagsOf(datagram, step));
      if (failure !== 0) return [answer(step.sequence, failure)];
    }
    this.tables.set(this.current, after);
    return [answer(steps.length, 0)];
  }

  private apply(step: Received, tables: Set<string>, flags: number): number {
    const name = attributes(step.payload.subarray(4)).get(1)?.toString("latin1") ?? "";
    const key = `${step.payload[0]} ${name}`;
    if (step.type === NEW_TABLE && tables.has(key) && (flags & EXCLUSIVE) !== 0) return Errno.EEXIST;
    if (step.type === NEW_TABLE) tables.add(key);
    if (step.type === DELETE_TABLE && !tables.delete(key)) return Errno.ENOENT;
    return 0;
  }
}

function flagsOf(datagram: Uint8Array, { payload }: Received): number {
  const header = payload.byteOffset - datagram.byteOffset - 16;
  return Buffer.from(datagram.buffer, datagram.byteOffset, datagram.byteLength).readUInt16LE(header + FLAGS_AT);
}
