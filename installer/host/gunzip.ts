/** Unpacks gzip (RFC 1952 and 1951), for the one packed file that is read: code that is small rather than fast. */

/** Codes of one alphabet: how many there are of each length, and their symbols in the order of the codes. */
interface Codes {
  readonly counts: readonly number[];
  readonly symbols: readonly number[];
}

const LONGEST_CODE = 15;

function codesOf(lengths: readonly number[]): Codes {
  const ofLength = (wanted: number) => lengths.flatMap((length, symbol) => (length === wanted ? [symbol] : []));
  const symbols = Array.from({ length: LONGEST_CODE + 1 }, (_, length) => (length === 0 ? [] : ofLength(length)));
  return { counts: symbols.map((each) => each.length), symbols: symbols.flat() };
}

/** What each symbol of a length or distance stands for, from how many bits follow it. */
function bases(first: number, extra: readonly number[]): readonly number[] {
  let next = first;
  return extra.map((bits) => {
    const base = next;
    next += 1 << bits;
    return base;
  });
}

const repeat = (value: number, count: number): number[] => new Array(count).fill(value);

const LENGTH_EXTRA = [...repeat(0, 8), ...[1, 2, 3, 4, 5].flatMap((bits) => repeat(bits, 4)), 0];
const LENGTH_BASES = [...bases(3, LENGTH_EXTRA.slice(0, -1)), 258];
const DISTANCE_EXTRA = [...repeat(0, 4), ...Array.from({ length: 26 }, (_, at) => (at >> 1) + 1)];
const DISTANCE_BASES = bases(1, DISTANCE_EXTRA);
/** The order in which the lengths of the codes for lengths stand. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END = 256;

const FIXED = {
  literals: codesOf([...repeat(8, 144), ...repeat(9, 112), ...repeat(7, 24), ...repeat(8, 8)]),
  distances: codesOf(repeat(5, 30)),
};

class Inflater {
  private bit = 0;
  private filled = 0;

  constructor(
    private readonly packed: Uint8Array,
    private at: number,
    private readonly out: Uint8Array,
  ) {}

  unpack(): Uint8Array {
    let isLast = false;
    while (!isLast) {
      isLast = this.bits(1) === 1;
      const type = this.bits(2);
      if (type === 0) this.stored();
      else if (type === 1) this.block(FIXED.literals, FIXED.distances);
      else if (type === 2) this.dynamic();
      else throw new Error("gzip: unknown kind of block");
    }
    if (this.filled !== this.out.length) throw new Error("gzip: ends early");
    return this.out;
  }

  /** So many bits, the lowest first. */
  private bits(count: number): number {
    let value = 0;
    for (let index = 0; index < count; index += 1) {
      const byte = this.packed[this.at];
      if (byte === undefined) throw new Error("gzip: ends early");
      value |= ((byte >> this.bit) & 1) << index;
      this.bit = (this.bit + 1) & 7;
      if (this.bit === 0) this.at += 1;
    }
    return value;
  }

  private put(byte: number): void {
    if (this.filled === this.out.length) throw new Error("gzip: larger than it says");
    this.out[this.filled++] = byte;
  }

  private symbol({ counts, symbols }: Codes): number {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length <= LONGEST_CODE; length += 1) {
      code |= this.bits(1);
      const count = counts[length] ?? 0;
      const symbol = symbols[index + code - first];
      if (code - first < count && symbol !== undefined) return symbol;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("gzip: unknown code");
  }

  private stored(): void {
    if (this.bit > 0) this.bits(8 - this.bit);
    const length = this.bits(16);
    this.bits(16);
    for (let index = 0; index < length; index += 1) this.put(this.bits(8));
  }

  private dynamic(): void {
    const [literals, distances, count] = [this.bits(5) + 257, this.bits(5) + 1, this.bits(4) + 4];
    const ofLengths = repeat(0, ORDER.length);
    for (const symbol of ORDER.slice(0, count)) ofLengths[symbol] = this.bits(3);
    const codes = codesOf(ofLengths);
    const lengths: number[] = [];
    while (lengths.length < literals + distances) {
      const symbol = this.symbol(codes);
      if (symbol < 16) lengths.push(symbol);
      else if (symbol === 16) lengths.push(...repeat(lengths.at(-1) ?? 0, this.bits(2) + 3));
      else lengths.push(...repeat(0, symbol === 17 ? this.bits(3) + 3 : this.bits(7) + 11));
    }
    this.block(codesOf(lengths.slice(0, literals)), codesOf(lengths.slice(literals)));
  }

  private block(literals: Codes, distances: Codes): void {
    for (let symbol = this.symbol(literals); symbol !== END; symbol = this.symbol(literals)) {
      if (symbol < END) {
        this.put(symbol);
        continue;
      }
      const length = (LENGTH_BASES[symbol - 257] ?? 0) + this.bits(LENGTH_EXTRA[symbol - 257] ?? 0);
      const of = this.symbol(distances);
      const distance = (DISTANCE_BASES[of] ?? 0) + this.bits(DISTANCE_EXTRA[of] ?? 0);
      if (distance > this.filled) throw new Error("gzip: refers to before its beginning");
      for (let index = 0; index < length; index += 1) this.put(this.out[this.filled - distance] ?? 0);
    }
  }
}

const HEADER_BYTES = 10;
const MOST_BYTES = 4 * 1024 * 1024;

/** The bytes of a gzip file that holds neither a name nor a comment, at most 4 MiB. @throws where it is another */
export function gunzip(packed: Uint8Array): Uint8Array {
  const [one, two, method, flags] = packed;
  if (one !== 0x1f || two !== 0x8b || method !== 8 || flags !== 0) throw new Error("not a plain gzip file");
  const size = packed.subarray(-4).reduceRight((high, byte) => high * 256 + byte, 0);
  if (size > MOST_BYTES) throw new Error(`gzip: ${size} bytes are too many`);
  return new Inflater(packed, HEADER_BYTES, new Uint8Array(size)).unpack();
}
