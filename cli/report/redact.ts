import { ApiServerVariable, InstallerVariable, PodVariable, RepairVariable } from "../../cni/contract";

/** The replacement of a secret. */
const REDACTED = "[redacted]";

/** The charts' variables, which do not contain secrets. */
const CHART_VARIABLES: ReadonlySet<unknown> = new Set(
  [ApiServerVariable, InstallerVariable, PodVariable, RepairVariable].flatMap((each) => Object.values(each)),
);

/** Copies of an object in itself. */
const COPIES: ReadonlySet<string> = new Set(["managedFields", "kubectl.kubernetes.io/last-applied-configuration"]);

/** The forms of secrets. A report does not guess at others: its user reads it before he publishes it. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]+-----(?:[\s\S]{0,20000}?-----END [A-Z0-9 ]+-----|[A-Za-z0-9+/=\s\\]*)/g, REDACTED],
  // PEM in base64, as in a kubeconfig.
  [/LS0tLS1CRUdJT[A-Za-z0-9+/=_-]*/g, REDACTED],
  // A JWT.
  [/\beyJ[\w-]{6,}={0,2}(?:\.[\w-]*){0,4}/g, REDACTED],
  [/\b(Bearer|Authorization\W{1,6}\w+)\s+[^\s"'\\,]+/gi, `$1 ${REDACTED}`],
  // The user in a URL.
  [/:\/\/[^\s/"'@]+@/g, `://${REDACTED}@`],
];

/** A text without secrets of a known form. */
export const redactText = (text: string): string => FORMS.reduce((left, [form, by]) => left.replace(form, by), text);

/** An object without secrets of a known form, and without values of variables that the charts do not set. */
export function redact(value: unknown): unknown {
  if (typeof value === "string") return redactText(value);
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([key]) => !COPIES.has(key));
  return Object.fromEntries(
    fields.map(([key, field]) => [
      key,
      key === "env" && Array.isArray(field) ? field.map(redactVariable) : redact(field),
    ]),
  );
}

function redactVariable(variable: { readonly name?: unknown; readonly value?: unknown }): unknown {
  const { name, value } = variable;
  return redact(value === undefined || CHART_VARIABLES.has(name) ? variable : { ...variable, value: REDACTED });
}
