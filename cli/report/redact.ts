import { ApiServerVariable, InstallerVariable, PodVariable, RepairVariable } from "../../cni/contract";
import { docs } from "../links";

/** The replacement of a secret. */
const REDACTED = "[redacted]";

/** The charts' variables, which do not contain secrets. */
const CHART_VARIABLES: ReadonlySet<unknown> = new Set(
  [ApiServerVariable, InstallerVariable, PodVariable, RepairVariable].flatMap((each) => Object.values(each)),
);

/** Names of fields, variables, headers and annotations with a secret, without word separators. */
const SECRET_NAME =
  /pass(word|wd|phrase|code)|pwd|secret|token|credential|cookie|(api|access|private|client|signing|encryption|auth|ssh|tls|account|master|shared|session|service)key|keydata|certificate.*data|cabundle|authorization|dockercfg|dockerconfig|jwt|bearer/;
/** Words that match only as a whole. */
const SECRET_WORD = /(?:^|[-_.])(?:pass|auth)$/i;
/** Fields of Kubernetes and of the plugin that only refer to a secret, or show whether one exists. */
const REFERENCES = new Set([
  "automountserviceaccounttoken",
  "imagepullsecrets",
  "secretkeyref",
  "secretname",
  "secretref",
  "serviceaccounttoken",
]);

const joined = (name: string): string => name.toLowerCase().replace(/[-_.]/g, "");

function isSecretName(name: string): boolean {
  const plain = joined(name);
  return (SECRET_NAME.test(plain) && !REFERENCES.has(plain)) || SECRET_WORD.test(name);
}

/** Pages that checks refer to, from the last dot of the host's name on. */
const OWN_PAGES = docs("").replace(/^.*\./, "");

/** Secrets recognized by their form, anywhere in a text. The patterns apply in order. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]+-----(?:[\s\S]{0,20000}?-----END [A-Z0-9 ]+-----|[A-Za-z0-9+/=\s\\]*)/g, REDACTED],
  // Truncated at its beginning: the lines before it are recognized by their length.
  [/[A-Za-z0-9+/=]{1,128}(?:\s|\\n)*-----END [A-Z0-9 ]+-----/g, REDACTED],
  // PEM in base64.
  [/LS0tLS1CRUdJT[A-Za-z0-9+/=_-]*/g, REDACTED],
  // A JWT, or another JSON object in base64.
  [/\beyJ[A-Za-z0-9_-]{6,}={0,2}(?:\.[A-Za-z0-9_-]*){0,4}/g, REDACTED],
  [/\b(Bearer|Negotiate)\s+[^\s"'\\,]+/gi, `$1 ${REDACTED}`],
  [/\b(Basic)\s+(?=[A-Za-z0-9+/]*[A-Z0-9=])[A-Za-z0-9+/]{4,}={0,2}/g, `$1 ${REDACTED}`],
  // The user's part of a URL.
  [/:\/\/[^\s/"'@]+@/g, `://${REDACTED}@`],
  // Keys of AWS, Google, GitHub, GitLab and Slack; tokens of kubeadm and k3s.
  [/\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\b(?:gh[pousr]|github_pat)_\w{16,}/g, REDACTED],
  [/\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{8,}|\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\bK10[0-9a-f]{16,}(?:::\S+)?/g, REDACTED],
  // Long words of mixed characters, such as lines of a key. Digests and UIDs have no capital letters.
  [
    new RegExp(
      `(?<![\\w+/-])(?!${OWN_PAGES})(?=[a-z0-9+/_-]*[A-Z])(?=[A-Z0-9+/_-]*[a-z])` +
        "(?:(?=[A-Za-z+/_-]*\\d)[\\w+/-]{40,}|[\\w+/-]{64,})={0,2}",
      "g",
    ),
    REDACTED,
  ],
];

/** A variable as Go prints it, or as JSON in the middle of a text. */
const VARIABLE =
  /(\bname\\*"?\s*:\s*\\*"?)([\w.-]+)(\\*"?,\s*\\*"?value\\*"?\s*:\s*)([^\n]*?)(?=\}|,\s*\\*"?value|\n|$)/gi;

function withoutForms(text: string): string {
  const rest = FORMS.reduce((left, [form, by]) => left.replace(form, by), text);
  return rest.replace(VARIABLE, (all, before: string, name: string, between: string) =>
    isSecretName(name) ? `${before}${name}${between}${REDACTED}` : all,
  );
}

/** A name and what separates it from its value: `password=`, `"token": `, `\"token\":`, `--token `. */
const ASSIGNMENT = /(?<![\w.-])(--?)?([A-Za-z_][\w.-]*)(?:\\*["']?[ \t]{0,4}(?::=|=|:)[ \t]*|(?<=--[\w.-]+)[ \t]+)/g;
const HEADERS = /authorization|cookie$/i;

/** The end of a quoted value: a quote not nested deeper than the first one, or the end of the line. */
function endOfQuoted(text: string, from: number, depth: number, quote: string): number {
  for (let at = from; at < text.length && text[at] !== "\n"; at++) {
    if (text[at] !== quote) continue;
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\" && at - slashes > from) slashes++;
    if (slashes <= depth) return at - slashes;
  }
  return endOfLine(text, from);
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

/** The lines of a YAML block: lines indented more than its name, and the items of its list. */
function endOfBlock(text: string, indent: string, from: number): number {
  let end = endOfLine(text, from);
  while (end < text.length) {
    const next = endOfLine(text, end + 1);
    const line = text.slice(end + 1, next);
    const isInside = line.startsWith(indent) && /^(?:[ \t]|- (?![\w.-]+:))/.test(line.slice(indent.length));
    if (line.trim() !== "" && !isInside) break;
    end = next;
  }
  return end;
}

/** A YAML block in the middle of a text, or in quotes. */
const BLOCK = /(?:[|>][-+\d]*)?[ \t]*(?:(?:\n|\\+n)[ \t]+(?:(?!\\+n)[^\n])*)+/y;

/** The end of a secret value that begins at an index. */
function endOfValue(text: string, start: number, from: number, name: string): number {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const before = text.slice(lineStart, start);
  const isField = /^[ \t]*(?:- +)?["']?$/.test(before) && /:\s*$/.test(text.slice(start, from));
  if (isField) return endOfBlock(text, /^[ \t]*/.exec(before)?.[0] ?? "", from);
  BLOCK.lastIndex = from;
  if (BLOCK.test(text)) return BLOCK.lastIndex;
  const [open, slashes = "", quote = ""] = /^(\\*)(["'`])/.exec(text.slice(from, from + 64)) ?? [];
  if (open !== undefined) return endOfQuoted(text, from + open.length, slashes.length, quote);
  if (HEADERS.test(name)) return endOfLine(text, from);
  if (text[from] === "[" || text[from] === "{") {
    const close = text.indexOf(text[from] === "[" ? "]" : "}", from);
    const line = endOfLine(text, from);
    return close === -1 || close > line ? line : close + 1;
  }
  // A quote followed by more belongs to the text around the value.
  const rest = /^(?:[^\s"']|["'](?![\s,}\])]|$))+/.exec(text.slice(from, endOfLine(text, from)))?.[0] ?? "";
  return from + rest.length;
}

function withoutAssigned(text: string): string {
  let made = "";
  let done = 0;
  const assignment = new RegExp(ASSIGNMENT);
  for (let found = assignment.exec(text); found !== null; found = assignment.exec(text)) {
    const [all, , name = ""] = found;
    if (!isSecretName(name)) {
      // The next word may itself be a name.
      assignment.lastIndex = found.index + all.length;
      continue;
    }
    const from = found.index + all.length;
    const end = endOfValue(text, found.index, from, name);
    const open = /^\\*["'`]/.exec(text.slice(from, Math.min(end, from + 64)))?.[0] ?? "";
    if (end > from) {
      made += `${text.slice(done, from)}${open}${REDACTED}`;
      done = end;
    }
    assignment.lastIndex = Math.max(end, from);
  }
  return made + text.slice(done);
}

/** Removes the secrets from a text. */
const withoutSecrets = (text: string): string => withoutAssigned(withoutForms(text));

/** Names given by Kubernetes and Linkerd, and common words, which reveal nothing about a cluster. */
const COMMON = new Set([
  ...["default", "kube-node-lease", "kube-public", "kube-system", "linkerd", "linkerd-cni"],
  ...["namespace", "node", "pod"],
]);

/** The names that a report replaces. */
export interface Names {
  /** Nodes, each with its other names: a host name, the names in its addresses. */
  readonly nodes: readonly (readonly string[])[];
  readonly namespaces: readonly string[];
  readonly pods: readonly string[];
  /** Names to keep: the installation's. */
  readonly own: readonly string[];
}

/** Patterns of a pod's name in a log or a message. */
const PODS: readonly RegExp[] = [
  /\bpods?\\*["']?[ =:]\s?\\*["']?([a-z0-9-]+)\/([a-z0-9][a-z0-9.-]*)/g,
  /K8S_POD_NAMESPACE=([a-z0-9-]+);(?:[^;\s]+;)*?K8S_POD_NAME=([a-z0-9][a-z0-9.-]*)/g,
  /\bnamespace\\*["']?[=:]\s?\\*["']?([a-z0-9-]+)\\*["']?,?[ ]\\*["']?pod\\*["']?[=:]\s?\\*["']?([a-z0-9][a-z0-9.-]*)/g,
];

/** Removes secrets, and replaces known names by numbers; the same name always has the same number. */
export class Redactor {
  private readonly called = new Map<string, string>();
  private readonly counts = { node: 0, namespace: 0, pod: 0 };
  private readonly own: ReadonlySet<string>;

  /** @param names undefined: all names are kept */
  constructor(private readonly names: Names | undefined) {
    const { nodes = [], namespaces = [], pods = [], own = [] } = names ?? {};
    this.own = new Set(own);
    for (const node of nodes) this.call("node", ...node);
    for (const each of namespaces) this.call("namespace", each);
    for (const each of pods) this.call("pod", each);
  }

  private call(kind: "node" | "namespace" | "pod", ...names: readonly string[]): void {
    const unknown = names.filter((name) => !COMMON.has(name) && !this.own.has(name) && !this.called.has(name));
    if (unknown.length === 0) return;
    const known = names.map((name) => this.called.get(name)).find((each) => each?.startsWith(kind));
    const alias = known ?? `${kind}-${++this.counts[kind]}`;
    for (const name of unknown) this.called.set(name, alias);
  }

  /** Learns names of pods from a text, such as those of deleted pods. */
  learn(text: string): void {
    if (this.names === undefined) return;
    for (const form of PODS) {
      for (const [, namespace = "", pod = ""] of text.matchAll(form)) {
        if (this.own.has(namespace)) continue;
        this.call("namespace", namespace);
        this.call("pod", pod.replace(/[.-]+$/, ""));
      }
    }
    for (const [, namespace = "", pod = ""] of text.matchAll(/([a-z0-9-]+)\/([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)/g)) {
      if (this.called.get(namespace)?.startsWith("namespace-")) this.call("pod", pod);
    }
  }

  private renamed(text: string): string {
    if (this.called.size === 0) return text;
    return text.replace(/[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/g, (word) => {
      const whole = this.called.get(word.toLowerCase());
      if (whole !== undefined || !word.includes(".")) return whole ?? word;
      return this.renamedParts(word.split("."));
    });
  }

  /** `cart.shop.svc`: the longest names first. */
  private renamedParts(parts: readonly string[]): string {
    for (let length = parts.length - 1; length > 0; length--) {
      for (let from = 0; from + length <= parts.length; from++) {
        const found = this.called.get(
          parts
            .slice(from, from + length)
            .join(".")
            .toLowerCase(),
        );
        if (found === undefined) continue;
        const [before, after] = [parts.slice(0, from), parts.slice(from + length)];
        return [
          ...(before.length === 0 ? [] : [this.renamedParts(before)]),
          found,
          ...(after.length === 0 ? [] : [this.renamedParts(after)]),
        ].join(".");
      }
    }
    return parts.length === 1 ? (this.called.get(parts[0]?.toLowerCase() ?? "") ?? parts[0] ?? "") : parts.join(".");
  }

  /** A text without secrets and names. */
  text(text: string): string {
    return this.renamed(withoutSecrets(text));
  }

  /** An object without secrets and names. The names of its fields stay. */
  object(value: unknown): unknown {
    return this.walked(value, false);
  }

  private walked(value: unknown, isSecret: boolean): unknown {
    if (typeof value === "string") return isSecret && value !== "" ? REDACTED : this.walkedText(value);
    if (typeof value === "number") return isSecret ? REDACTED : value;
    if (Array.isArray(value)) return value.map((each) => this.walked(each, isSecret));
    if (typeof value !== "object" || value === null) return value;
    const fields = Object.entries(value);
    const { name, kind } = value as { readonly name?: unknown; readonly kind?: unknown };
    return Object.fromEntries(
      fields.flatMap(([key, field]) => {
        if (key === "managedFields" || key === "kubectl.kubernetes.io/last-applied-configuration") return [];
        if (key === "env" && Array.isArray(field)) return [[key, field.map((each) => this.variable(each))]];
        const isValueOfSecret = key.toLowerCase() === "value" && typeof name === "string" && isSecretName(name);
        const isData = kind === "Secret" && /^(?:data|stringData)$/.test(key);
        const isNumber = typeof field === "number" && /seconds$/i.test(key);
        const secret = isSecret || isValueOfSecret || isData || (isSecretName(key) && !isNumber);
        return [[withoutSecrets(key), this.walked(field, secret)]];
      }),
    );
  }

  /** A text that is JSON is redacted field by field. */
  private walkedText(text: string): string {
    if (/^\s*[[{]/.test(text)) {
      try {
        return JSON.stringify(this.walked(JSON.parse(text), false), undefined, 2);
      } catch {
        // Not JSON.
      }
    }
    return this.text(text);
  }

  /** A variable of a container. Its value is removed unless the charts set it. */
  private variable(variable: unknown): unknown {
    const { name, value } = (variable ?? {}) as { readonly name?: unknown; readonly value?: unknown };
    if (typeof value !== "string" || value === "") return this.walked(variable, false);
    const kept = CHART_VARIABLES.has(name) ? this.walkedText(value) : REDACTED;
    return { ...(this.walked({ ...(variable as object), value: "" }, false) as object), value: kept };
  }
}
