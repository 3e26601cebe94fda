import { z } from "zod";
import { integer, numberOrText } from "./helm";

export const port = () => integer(1, MAX_PORT);

/** A text without control characters. */
export const word = () => z.string().regex(/^[^\p{Cc}]*$/u, "is not a text on one line");

/** An absolute path, with any character but control characters. */
export const directory = () => z.string().regex(/^\/[^\p{Cc}]*$/u, "is not an absolute path");

const onePort = "[1-9][0-9]{0,4}";
const listOf = (item: string) => new RegExp(`^ *(${item}( *, *${item})*)? *$`);

function portsOf(text: string): readonly string[] {
  return text.split(",").flatMap((item) => (item.trim() === "" ? [] : [item.trim()]));
}

/** What is said about a part of a list of ports that is not right. */
export const NOT_A_RANGE = "is not a port or a range low-high between 1 and 65535";
export const MAX_PORT = 65535;

function isPortRange(text: string): boolean {
  const [low = Number.NaN, high = low] = text.split("-").map(Number);
  return low >= 1 && low <= high && high <= MAX_PORT;
}

function checkPorts(text: string, context: z.RefinementCtx): void {
  const wrong = portsOf(text).filter((item) => !isPortRange(item));
  for (const item of wrong) context.addIssue({ code: "custom", message: `has ${item}, which ${NOT_A_RANGE}` });
}

/** Ports, comma-separated. */
export const ports = () =>
  numberOrText(z.string().regex(listOf(onePort), "is not a list of ports such as 25,587").superRefine(checkPorts));

/** Ports and ranges, comma-separated. */
export const portRanges = () =>
  numberOrText(
    z
      .string()
      .regex(listOf(`${onePort}(-${onePort})?`), "is not a list of ports and ranges such as 25,587,8000-8100")
      .superRefine(checkPorts),
  );

/** A Kubernetes quantity, or nothing. */
export const quantity = () =>
  z.union([
    z.string().regex(/^([+-]?[0-9.]+([eEinumkKMGTP]*[-+]?[0-9]*))?$/, "is not a quantity such as 100m or 64Mi"),
    z.number().min(0),
  ]);

/** A number, or a percentage. */
export const share = () =>
  numberOrText(
    z
      .string()
      .regex(/^(0|[1-9][0-9]{0,4})%?$/, "is not a number or a percentage such as 25%")
      // What the pattern says, for the JSON schema of one that comes as a number.
      .meta({ minimum: 0, maximum: 99999 }),
  );

/** Labels or annotations. */
export const textMap = () => z.record(z.string(), z.string());

/** The name of a namespace. */
export const namespaceName = () =>
  z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "is not the name of a namespace");

/** The name of an annotation, with or without a prefix. */
export const annotationName = () =>
  z
    .string()
    .regex(
      /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
      "is not an annotation's name",
    );
