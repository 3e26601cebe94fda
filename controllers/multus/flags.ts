/** Flags as Go programs take them: `-name value`, `-name=value`, with one dash or two; a boolean may stand alone. */

/** Flags by name with their defaults; a boolean's default is a boolean. */
export type FlagTable = Readonly<Record<string, string | boolean>>;

export type FlagValues<T extends FlagTable> = {
  readonly [Name in keyof T]: T[Name] extends boolean ? boolean : string;
};

const FLAG = /^--?(?<name>[^-=][^=]*)(?:=(?<value>.*))?$/s;

/** As Go reads booleans. */
const BOOLEANS: Readonly<Record<string, boolean>> = {
  ...Object.fromEntries(["1", "t", "T", "TRUE", "true", "True"].map((word) => [word, true])),
  ...Object.fromEntries(["0", "f", "F", "FALSE", "false", "False"].map((word) => [word, false])),
};

class FlagParser {
  readonly problems: string[] = [];
  readonly values: Record<string, string | boolean>;
  private readonly rest: string[];

  constructor(
    args: readonly string[],
    private readonly table: FlagTable,
  ) {
    this.rest = [...args];
    this.values = { ...table };
  }

  parse(): void {
    for (let arg = this.rest.shift(); arg !== undefined; arg = this.rest.shift()) {
      const { name, value } = FLAG.exec(arg)?.groups ?? {};
      if (name === undefined) this.problems.push(`"${arg}" is not a flag: flags are -name value or -name=value`);
      else if (!Object.hasOwn(this.table, name)) this.unknown(name);
      else if (typeof this.table[name] === "boolean") this.boolean(name, value);
      else this.text(name, value);
    }
  }

  private unknown(name: string): void {
    const known = Object.keys(this.table).map((each) => `-${each}`);
    this.problems.push(`-${name} is not known; known are ${known.join(", ")}`);
    // Its value is no mistake of its own.
    if (this.rest[0]?.startsWith("-") === false) this.rest.shift();
  }

  /** Unlike in Go the value may be the next argument, too. */
  private boolean(name: string, given: string | undefined): void {
    const next = this.rest[0] ?? "";
    const value = given ?? (Object.hasOwn(BOOLEANS, next) ? this.rest.shift() : undefined) ?? "true";
    const read = Object.hasOwn(BOOLEANS, value) ? BOOLEANS[value] : undefined;
    if (read === undefined) this.problems.push(`-${name} "${value}" is not true or false`);
    else this.values[name] = read;
  }

  private text(name: string, given: string | undefined): void {
    const value = given ?? this.rest.shift();
    if (value === undefined) this.problems.push(`-${name} has no value: write -${name}=VALUE`);
    else this.values[name] = value;
  }
}

/** Reads arguments; of a flag that is given twice, the last counts. What is wrong stands in `problems`. */
export function parseFlags<T extends FlagTable>(
  args: readonly string[],
  table: T,
): { readonly values: FlagValues<T>; readonly problems: readonly string[] } {
  const parser = new FlagParser(args, table);
  parser.parse();
  return { values: parser.values as FlagValues<T>, problems: parser.problems };
}
