import { MAX_PORT } from "../cni/ports";
import type { ListenAddress } from "./http-server";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Names of flags with their defaults; the default of a boolean flag is a boolean. */
type FlagTable = Readonly<Record<string, string | boolean>>;

/** The sources of a process's settings. */
interface Sources<F extends FlagTable> {
  readonly environment: Environment;
  readonly args?: readonly string[];
  readonly flags?: F;
}

const HTTP_URL = /^http:\/\/(?:\[[\da-f:.]+\]|[^\s/?#@:[\]]+)(?::\d{1,5})?(?:[/?#]\S*)?$/i;
const IPV6 = String.raw`[\da-f]*:[\da-f:.]*:[\da-f.]*(?:%[\w.-]+)?`;
const HOST = new RegExp(String.raw`^(?:[\w.-]{1,253}|${IPV6}|\[${IPV6}\])$`, "i");
const ADDRESS = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]*)):(?<port>\d{1,5})$/;

/** As Go reads booleans. */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...["true", "1", "t", "T", "TRUE", "True"].map((word) => [word, true] as const),
  ...["false", "0", "f", "F", "FALSE", "False"].map((word) => [word, false] as const),
]);

/** A value with its name. Each method reports a wrong value, and then returns a usable one. */
export class Setting {
  constructor(
    readonly name: string,
    readonly value: string,
    private readonly problems: string[],
  ) {}

  oneOf<T extends string>(known: readonly T[]): T {
    const found = known.find((each) => each === this.value);
    if (found === undefined) this.refuse(`one of ${known.join(", ")}`);
    return found ?? (known[0] as T);
  }

  boolean(): boolean {
    const found = BOOLEANS.get(this.value);
    if (found === undefined) this.refuse("true or false");
    return found ?? false;
  }

  /** A whole number. @param range the lowest and the highest allowed value; @default from 0 */
  integer([low, high]: readonly [low: number, high: number] = [0, Number.MAX_SAFE_INTEGER]): number {
    const number = /^\d+$/.test(this.value) ? Number(this.value) : Number.NaN;
    if (number >= low && number <= high) return number;
    this.refuse(`a whole number from ${low}${high === Number.MAX_SAFE_INTEGER ? "" : ` to ${high}`}`);
    return low;
  }

  positive(): number {
    const number = /^\d+(\.\d+)?$/.test(this.value) ? Number(this.value) : 0;
    if (number <= 0) this.refuse("a number above 0");
    return number;
  }

  port(): number {
    const port = /^\d{1,5}$/.test(this.value) ? Number(this.value) : 0;
    if (port < 1 || port > MAX_PORT) this.refuse("a port");
    return port;
  }

  /** A host name or an IP address. @returns an IPv6 address without brackets */
  host(): string {
    if (!HOST.test(this.value)) this.refuse("a host name or an IP address alone, such as 10.96.0.1");
    return this.value.replace(/^\[|\]$/g, "");
  }

  /** `HOST:PORT`, `[IPV6]:PORT` or, for every address, `:PORT`. */
  address(): ListenAddress {
    const { v6, name, port = "0" } = ADDRESS.exec(this.value)?.groups ?? {};
    const host = v6 ?? (name === "" ? undefined : name);
    const number = Number(port);
    if (number < 1 || number > MAX_PORT) this.refuse("HOST:PORT or :PORT");
    return host === undefined ? { port: number } : { host, port: number };
  }

  /** Without trailing slashes. */
  absolutePath(): string {
    if (!/^\/[^\0]*$/.test(this.value)) this.refuse("an absolute path");
    return this.value.replace(/(?<=.)\/+$/, "");
  }

  matching({ pattern, what }: { readonly pattern: RegExp; readonly what: string }): string {
    if (!pattern.test(this.value)) this.refuse(what);
    return this.value;
  }

  httpUrl(): string {
    if (!HTTP_URL.test(this.value)) this.refuse("a URL such as http://127.0.0.1:9991/ready");
    return this.value;
  }

  private refuse(what: string): void {
    this.problems.push(`${this.name} ${JSON.stringify(this.value)} is not ${what}`);
  }
}

/** Reads the settings of a process, and collects problems, to report them all at once. */
export class SettingsReader<F extends FlagTable = Record<never, string>> {
  readonly problems: string[] = [];
  private readonly environment: Environment;
  private readonly flags: FlagTable;

  constructor({ environment, args = [], flags }: Sources<F>) {
    this.environment = environment;
    this.flags = { ...flags, ...(args.length === 0 ? {} : parseFlags(args, flags ?? {}, this.problems)) };
  }

  /** A variable of the environment. @param fallback if it is unset or empty */
  env(name: string, fallback = ""): Setting {
    return this.setting(name, this.optional(name) ?? fallback);
  }

  /** A flag of the command line; the last one counts if it is repeated. */
  flag(name: keyof F & string): Setting {
    return this.setting(`--${name}`, String(this.flags[name] ?? ""));
  }

  /** A value from elsewhere. @param name for messages */
  setting(name: string, value: string): Setting {
    return new Setting(name, value, this.problems);
  }

  /** A variable of the environment; undefined if it is unset or empty. */
  optional(name: string): string | undefined {
    return this.environment[name] || undefined;
  }

  /** A required variable of the environment. @param remedy how to set it */
  required(name: string, remedy: string): string {
    const value = this.optional(name);
    if (value === undefined) this.problems.push(`${name} is not set: ${remedy}`);
    return value ?? "";
  }

  /** @throws an Error that lists all problems */
  finish(): void {
    if (this.problems.length > 0) throw new Error(this.problems.join("; "));
  }
}

/** A flag as in Go programs, with one dash or two. */
const FLAG = /^--?(?<name>[^-=][^=]*)(?:=(?<value>.*))?$/s;

/** The values of the given flags; the last one of repeated flags. */
function parseFlags(args: readonly string[], table: FlagTable, problems: string[]): Record<string, string> {
  const values: Record<string, string> = {};
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const { name, value } = FLAG.exec(arg)?.groups ?? {};
    if (name === undefined) {
      problems.push(`${JSON.stringify(arg)} is not a flag: flags are --name value or --name=value`);
    } else if (!Object.hasOwn(table, name)) {
      const known = Object.keys(table).map((each) => `--${each}`);
      problems.push(`--${name} is not known; known are ${known.join(", ")}`);
      // The next word is its value, not another mistake.
      if (value === undefined && rest[0]?.startsWith("-") === false) rest.shift();
    } else if (value !== undefined) {
      values[name] = value;
    } else if (typeof table[name] === "boolean") {
      values[name] = BOOLEANS.has(rest[0] ?? "") ? String(rest.shift()) : "true";
    } else if (rest[0] !== undefined) {
      values[name] = String(rest.shift());
    } else {
      problems.push(`--${name} has no value: write --${name}=VALUE`);
    }
  }
  return values;
}
