import { z } from "zod";
import { MAX_PORT } from "../cni/ports";
import { integer, numberOrText } from "../helm/loose-types";

export const port = () => integer(1, MAX_PORT);

/** A text without control characters. */
export const word = () => z.string().regex(/^[^\p{Cc}]*$/u, "is not a text on one line");

/** An absolute path, with any character but control characters. */
export const directory = () => z.string().regex(/^\/[^\p{Cc}]*$/u, "is not an absolute path");

/** The same, or nothing. */
export const directoryOrNothing = () => z.string().regex(/^\/[^\p{Cc}]*$|^$/u, "is not an absolute path");

/** What the items of a list of ports are. */
export interface PortItem {
  readonly pattern: string;
  /** What is said about one that is not right. */
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

/**
 * A list, comma-separated. That its items are right is for constructs and templates to say, by name: a JSON schema
 * could only show a pattern.
 */
const listOf = (item: PortItem) =>
  numberOrText(
    z.string().superRefine((text, context) => {
      const items = text
        .trim()
        .split(new RegExp(COMMA))
        .filter((one) => one !== "");
      for (const one of items.filter((one) => !isRight(one, item))) {
        context.addIssue({ code: "custom", message: `has ${one}, which ${item.wrong}` });
      }
    }),
  );

/** Ports, comma-separated. */
export const ports = () => listOf(PORT);

/** Ports and ranges, comma-separated. */
export const portRanges = () => listOf(PORT_RANGE);

/** A Kubernetes quantity, or nothing. */
export const quantity = () =>
  z.union([
    z.string().regex(/^([+-]?[0-9.]+([eEinumkKMGTP]*[-+]?[0-9]*))?$/, "is not a quantity such as 100m or 64Mi"),
    z.number().min(0),
  ]);

/** What the pattern says, for the JSON schema of one that comes as a number. */
const SHARE_AS_NUMBER = { minimum: 0, maximum: 99999, multipleOf: 1 };

/** A number, or a percentage. */
export const share = () =>
  numberOrText(
    z
      .string()
      .regex(/^(0|[1-9][0-9]{0,4})%?$/, "is not a number or a percentage such as 25%")
      .meta(SHARE_AS_NUMBER),
  );

/** The same, or nothing. */
export const shareOrNothing = () =>
  numberOrText(
    z
      .string()
      .regex(/^((0|[1-9][0-9]{0,4})%?)?$/, "is not a number or a percentage such as 25%")
      .meta(SHARE_AS_NUMBER),
  );

const QUALIFIED_NAME = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Labels. */
export const labels = () =>
  z.record(
    z.string().regex(QUALIFIED_NAME, "is not a label's name, such as team or example.com/team"),
    z
      .string()
      .regex(
        /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/,
        "is not a label's value: up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit",
      ),
  );

/** The name of a priority class, or nothing. */
export const priorityClassName = () =>
  z
    .string()
    .regex(
      /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/,
      "is not the name of a priority class, such as system-node-critical",
    );

/** Annotations. */
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
