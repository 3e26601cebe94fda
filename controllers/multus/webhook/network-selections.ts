import { isIP } from "node:net";
import * as z from "zod/mini";

/** One network that a pod asks for. */
export interface Selection {
  /** Name of its definition. */
  readonly name: string;
  /** Where the definition is; empty: in the pod's own namespace. */
  readonly namespace: string;
}

/** A value that Multus refuses; the message says which item, and why. */
export class NetworksError extends Error {
  override readonly name = "NetworksError";
}

const LONGEST_QUOTE = 100;

/** A part of the value in a message: its beginning, where it is long. */
export const quote = (text: string) =>
  JSON.stringify(text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text);

const MAC = /^[0-9a-f]{2}(?:([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2})*)?$/i;
const MAC_BYTES = [6, 8, 20];
const DOTTED_MAC = /^[0-9a-f]{4}(?:\.[0-9a-f]{4})*$/i;

function isMac(text: string): boolean {
  const digits = MAC.test(text) || DOTTED_MAC.test(text) ? text.replace(/[^0-9a-f]/gi, "").length : 0;
  return MAC_BYTES.includes(digits / 2);
}

const isAddress = (text: string) => isIP(text) !== 0 && !text.includes("%");

function isAddressOrSubnet(text: string): boolean {
  const slash = text.indexOf("/");
  if (slash < 0) return isAddress(text);
  const [address, bits] = [text.slice(0, slash), text.slice(slash + 1)];
  return isAddress(address) && /^\d+$/.test(bits) && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
}

/** Multus takes members' names in any case, and the long s for an s. */
const fold = (key: string) => key.replaceAll("ſ", "s").toLowerCase();

/** An object's members by their folded names: of those that Multus does not know, any number may fold to one name. */
function folded(value: unknown, known: z.core.$ZodShape): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value)
    .map(([key, member]) => [fold(key), member] as const)
    .filter(([key]) => Object.hasOwn(known, key));
  const seen = new Set<string>();
  for (const [key] of members) {
    // Multus goes by the last, but looks at all of them.
    if (seen.has(key)) throw new NetworksError(`member ${quote(key)} is there twice`);
    seen.add(key);
  }
  return Object.fromEntries(members.filter(([, member]) => member !== null));
}

const object = <T extends z.core.$ZodShape>(shape: T) =>
  z.pipe(
    z.transform((value) => folded(value, shape)),
    z.object(shape, "is not an object"),
  );
const list = <T extends z.core.SomeType>(item: T) => z.array(item, "is not a list");
const text = (is: (text: string) => boolean, what: string) =>
  z.string(`is not ${what}`).check(z.refine(is, `is not ${what}`));
const or = (is: (text: string) => boolean) => (value: string) => value === "" || is(value);

const string = z.optional(z.string("is not a string"));
/** Whole numbers of 64 bits, as Go's; JSON.parse rounds the largest up to 2^63. */
const isInteger = (value: number) => Number.isInteger(value) && Math.abs(value) <= 2 ** 63;
const integer = z.optional(
  z.number("is not a whole number").check(z.refine(isInteger, "is not a whole number of 64 bits")),
);
const mac = z.optional(text(or(isMac), "a hardware address"));

const SELECTIONS = list(
  object({
    name: string,
    namespace: string,
    interface: string,
    interfacerequest: string,
    deviceid: string,
    mac,
    "infiniband-guid": mac,
    ips: z.optional(list(text(isAddressOrSubnet, "an IP address or subnet"))),
    portmappings: z.optional(
      list(z.nullable(object({ hostport: integer, containerport: integer, protocol: string, hostip: string }))),
    ),
    bandwidth: z.optional(
      object({ ingressrate: integer, ingressburst: integer, egressrate: integer, egressburst: integer }),
    ),
    "cni-args": z.optional(z.record(z.string(), z.unknown(), "is not an object")),
    "default-route": z.optional(list(z.nullable(text(or(isAddress), "an IP address")))),
  }),
);

function parse(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw new NetworksError("is neither a list of names nor JSON");
  }
}

/** Where the first problem is, as in `[0].ips[1] is not an IP address`. */
function describe({ issues: [issue] }: z.core.$ZodError): string {
  const steps = (issue?.path ?? []).map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`));
  return `${steps.join("") || "the value"}: ${issue?.message}`;
}

/**
 * Reads the annotation's JSON form, as strictly as Multus: what it refuses keeps the pod from starting.
 * @throws NetworksError
 */
export function readSelections(value: string): readonly Selection[] {
  const result = SELECTIONS.safeParse(parse(value));
  if (!result.success) throw new NetworksError(describe(result.error));
  return result.data.map(({ name = "", namespace = "" }) => ({ name, namespace }));
}
