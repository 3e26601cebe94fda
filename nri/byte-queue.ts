import { concat } from "../host/bytes";

/** A queue of bytes that arrive in chunks; a part is joined once, however many chunks it has. */
export class ByteQueue {
  private chunks: Uint8Array[] = [];
  private length = 0;

  /** @param chunk must not change afterwards */
  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.chunks.push(chunk);
    this.length += chunk.length;
  }

  /** The first bytes, without removing them; undefined if there are fewer. */
  peek(size: number): Uint8Array | undefined {
    if (this.length < size) return undefined;
    let joined = 0;
    let count = 0;
    while (joined < size) joined += this.chunks[count++]?.length ?? 0;
    if (count > 1) this.chunks.splice(0, count, concat(this.chunks.slice(0, count)));
    return (this.chunks[0] ?? new Uint8Array(0)).subarray(0, size);
  }

  /** Removes and returns the first bytes; undefined if there are fewer. */
  take(size: number): Uint8Array | undefined {
    const taken = this.peek(size);
    const [first] = this.chunks;
    if (taken === undefined || first === undefined) return taken;
    this.length -= size;
    if (first.length === size) this.chunks.shift();
    else this.chunks[0] = first.subarray(size);
    return taken;
  }
}
