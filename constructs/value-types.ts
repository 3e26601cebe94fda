import { MAX_PORT } from "../cni/ports";

/** The numbers of ports. */
export const PORT_NUMBERS = { min: 1, max: MAX_PORT } as const;

/** A text without control characters. */
export const WORD = { pattern: /^[^\p{Cc}]*$/u, wrong: "is not a text on one line" } as const;

/** An absolute path, with any character but control characters. */
export const DIRECTORY = { pattern: /^\/[^\p{Cc}]*$/u, wrong: "is not an absolute path" } as const;

/** The same, or nothing. */
export const DIRECTORY_OR_NOTHING = { ...DIRECTORY, pattern: /^\/[^\p{Cc}]*$|^$/u } as const;

/** The items of a list of ports. */
export interface PortItem {
  readonly pattern: string;
  /** The error for an item that does not match. */
  readonly wrong: string;
}

// Port 0 too, as in linkerd's lists; no connection has it.
const onePort = "(0|[1-9][0-9]{0,4})";
export const PORT: PortItem = { pattern: `^${onePort}$`, wrong: `is not a port between 0 and ${MAX_PORT}` };
export const PORT_RANGE: PortItem = {
  pattern: `^${onePort}(-${onePort})?$`,
  wrong: `is not a port or a range low-high between 0 and ${MAX_PORT}`,
};

/** Separator of a list's items. */
export const COMMA = "[ \\t\\r\\n]*,[ \\t\\r\\n]*";

function isRight(item: string, { pattern }: PortItem): boolean {
  const [low = Number.NaN, high = low] = item.split("-").map(Number);
  return new RegExp(pattern).test(item) && low <= high && high <= MAX_PORT;
}

/** A comma-separated list. Constructs and templates check its items, because a JSON schema can only show a pattern. */
const listOf = (item: PortItem) => ({
  check: (text: string): readonly string[] =>
    text
      .trim()
      .split(new RegExp(COMMA))
      .filter((one) => one !== "" && !isRight(one, item))
      .map((one) => `has ${one}, which ${item.wrong}`),
});

/** Ports, comma-separated. */
export const PORTS = listOf(PORT);

/** Ports and ranges, comma-separated. */
export const PORT_RANGES = listOf(PORT_RANGE);

/** A number, or a percentage. */
export const SHARE = {
  pattern: /^(0|[1-9][0-9]{0,4})%?$/,
  wrong: "is not a number or a percentage such as 25%",
  number: { minimum: 0, maximum: 99999, multipleOf: 1 },
} as const;

/** The same, or nothing. */
export const SHARE_OR_NOTHING = { ...SHARE, pattern: /^((0|[1-9][0-9]{0,4})%?)?$/ } as const;

/** Labels. */
export const LABELS = {
  keys: {
    pattern: /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
    wrong: "is not a label's name, such as team or example.com/team",
  },
  texts: {
    pattern: /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/,
    wrong: "is not a label's value: up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit",
  },
} as const;

/** The name of a priority class, or nothing. */
export const PRIORITY_CLASS = {
  pattern: /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/,
  wrong: "is not the name of a priority class, such as system-node-critical",
} as const;

/** The name of a namespace. */
export const NAMESPACE = {
  pattern: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  wrong: "is not the name of a namespace",
} as const;

/** The name of an annotation, with or without a prefix. */
export const ANNOTATION = {
  pattern: /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
  wrong: "is not an annotation's name",
} as const;

/** A part of a manifest: the API server knows its fields. */
export const ANYTHING = { members: {}, isOpen: true } as const;
