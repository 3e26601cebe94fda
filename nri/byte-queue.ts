import { concat } from "../host/bytes";

/** Bytes that arrive in chunks, and are taken from the front; however many chunks make a part, it is joined once. */
export class ByteQueue {
  private chunks: Uint8Array[] = [];
  private length = 0;

  /** @param chunk must not change afterwards */
  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.chunks.push(chunk);
    this.length += chunk.length;
  }

  /** The first bytes, which stay; undefined if there are fewer. */
  peek(size: number): Uint8Array | undefined {
    if (this.length < size) return undefined;
    let joined = 0;
    let count = 0;
    while (joined < size) joined += this.chunks[count++]?.length ?? 0;
    if (count > 1) this.chunks.splice(0, count, concat(this.chunks.slice(0, count)));
    return (this.chunks[0] ?? new Uint8Array(0)).subarray(0, size);
  }

  /** The first bytes, which are removed; undefined if there are fewer. */
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
