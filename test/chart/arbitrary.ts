import fc from "fast-check";
import { isValue, type Value, type ValueMembers } from "../../helm/value";

/** Texts that a template, YAML or JSON may read as something else. */
const awkward = [
  "",
  " ",
  "yes",
  "null",
  "~",
  "1e3",
  "0x10",
  "01",
  "2001-01-01",
  "{{ .Values.x }}",
  "{{",
  "a: b",
  "- a",
  "# a",
  "'",
  '"',
  "\\",
  "%s",
  "&a",
  "*a",
  "<b>&amp;",
  "größe",
  "日本語",
  "🙂",
  "\ufeff",
  "=",
  "a\\nb",
  "\u2003",
  "a\u2008",
  "\u3000b",
  "a\u1680b",
];

/**
 * Without the line separators that Helm's `toYaml` itself does not keep, and without the space that the YAML parser of
 * this test takes for white space.
 */
const texts = fc
  .oneof(fc.constantFrom(...awkward), fc.string({ unit: "grapheme", maxLength: 12 }))
  .map((text) => text.replace(/[\u0085\u00a0\u2028\u2029]/g, ""));
/** Without control characters, as names are. */
const lines = texts.map((text) => text.replace(/\p{Cc}/gu, ""));
/** Directories are quoted, not dumped: these may have any character. */
const paths = fc.oneof(lines, fc.constantFrom("\u00a0", "a\u2028b", "\u2029")).map((text) => `/${text}`);

const port = fc.oneof(fc.integer({ min: 1, max: 65535 }), fc.constantFrom(1, 65535));
const range = fc.tuple(port, port).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
const separator = fc.constantFrom(",", ", ", " ,");
const listOf = (item: fc.Arbitrary<string>) =>
  fc.tuple(fc.array(item, { maxLength: 4 }), separator).map(([list, between]) => list.join(between));

/** Values of labels that YAML could read as another type. */
const labelValues = fc.oneof(
  fc.constantFrom("", "yes", "null", "1", "1e3", "0x10", "01", "true", "2001-01-01"),
  fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?$/),
);
const labels = fc.dictionary(
  fc.oneof(
    fc.constantFrom("k8s-app", "linkerd.io/cni-resource", "team", "a.b/c", "yes", "1"),
    fc.stringMatching(/^([a-z0-9]([-a-z0-9.]{0,8}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?$/),
  ),
  labelValues,
  { maxKeys: 4 },
);

const annotations = fc.dictionary(
  fc
    .oneof(fc.constantFrom("k8s-app", "linkerd.io/cni-resource", "team", "a.b/c", "yes", "1"), lines)
    .filter((key) => key !== "__proto__"),
  texts,
  { maxKeys: 4 },
);

const quantities = fc.oneof(
  fc.constantFrom("", "1", "100m", "64Mi", "0.5", "1e3", "2G"),
  fc.integer({ min: 0, max: 1 << 30 }),
  fc.constantFrom(0.5, 1.25),
);

const containers = fc.array(
  fc.record(
    {
      name: lines.map((text) => `c${text}`),
      image: lines.map((text) => `i${text}`),
      args: fc.array(texts, { maxLength: 3 }),
      env: fc.array(fc.record({ name: lines, value: texts }), { maxLength: 2 }),
      restartPolicy: fc.constant("Always"),
      tty: fc.boolean(),
    },
    { requiredKeys: ["name", "image"] },
  ),
  { maxLength: 2 },
);

/** Objects with different identities, none of them the chart's. */
const objects = fc.uniqueArray(
  fc.record(
    {
      apiVersion: fc.constant("v1"),
      kind: fc.constantFrom("ConfigMap", "Secret"),
      metadata: fc.record({ name: fc.stringMatching(/^extra-[a-z0-9]{1,6}$/) }, { noNullPrototype: true }),
      data: annotations,
      list: fc.array(texts, { maxLength: 2 }),
      count: fc.integer(),
    },
    { requiredKeys: ["apiVersion", "kind", "metadata"], noNullPrototype: true },
  ),
  { maxLength: 3, selector: ({ kind, metadata }) => `${kind}/${metadata.name}` },
);

const shares = fc.oneof(
  fc.integer({ min: 0, max: 99999 }),
  fc.integer({ min: 0, max: 100 }).map((share) => `${share}%`),
  fc.constantFrom("1", "0", "10"),
);

/** Numbers and booleans, now and then as `--set-string` passes them. */
const loosely = (values: fc.Arbitrary<number | boolean>) =>
  fc.tuple(values, fc.boolean()).map(([value, asText]) => (asText ? String(value) : value));

/** Values that their schema describes by a pattern, or that it leaves open. */
const special: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  ignoreInboundPorts: fc.oneof(listOf(fc.oneof(port.map(String), range)), port),
  ignoreOutboundPorts: fc.oneof(listOf(fc.oneof(port.map(String), range)), port),
  portsToRedirect: fc.oneof(listOf(port.map(String)), port),
  destCNINetDir: fc.oneof(paths, fc.constant("/one")),
  destCNIBinDir: fc.oneof(paths, fc.constant("/one")),
  socketDir: paths,
  netnsDir: paths,
  maxUnavailable: shares,
  // One of them has to be 0, and only one.
  rollingUpdate: fc
    .record({ maxSurge: shares, maxUnavailable: shares }, { requiredKeys: [], noNullPrototype: true })
    .filter(
      ({ maxSurge, maxUnavailable }) =>
        maxSurge === undefined ||
        maxUnavailable === undefined ||
        /^0%?$/.test(String(maxSurge)) !== /^0%?$/.test(String(maxUnavailable)),
    ),
  version: fc.oneof(
    lines.map((text) => (text === "" ? "x" : text)),
    fc.constantFrom(0, 1, 1.7, 2026, 20260801),
  ),
  digest: fc.oneof(
    fc.constant(""),
    fc.stringMatching(/^[0-9a-f]{64}$/).map((digits) => `sha256:${digits}`),
  ),
  nodeTaint: fc.record(
    {
      enabled: fc.constantFrom(true, false, "true", "false"),
      key: fc.constantFrom(
        "linkerd.io/cni-not-ready",
        "example.com/not.ready_1",
        "a",
        "null",
        "yes",
        "1e3",
        "0x10",
        "01",
      ),
      admissionPolicy: fc.constantFrom("", "v1", "v1beta1"),
      ownNodeOnly: fc.constantFrom(true, false, "true", "false"),
    },
    { requiredKeys: [], noNullPrototype: true },
  ),
  affinity: fc.record(
    { nodeAffinity: fc.dictionary(fc.constantFrom("a", "b"), fc.array(labels, { maxLength: 2 }), { maxKeys: 2 }) },
    { requiredKeys: [], noNullPrototype: true },
  ),
  topologySpreadConstraints: fc.array(
    fc.record(
      { topologyKey: texts, maxSkew: fc.nat(), labelSelector: fc.record({ matchLabels: labels }) },
      { requiredKeys: ["topologyKey"] },
    ),
    { maxLength: 2 },
  ),
  cniKubeconfigNodePath: paths,
  // Ports of one pod, which must differ: the third is nearly always below or above.
  webhookPort: loosely(fc.integer({ min: 20_000, max: 30_000 })),
  metricsPort: loosely(fc.integer({ min: 40_000, max: 50_000 })),
  nodeSelector: labels,
  matchLabels: labels,
  limit: quantities,
  request: quantities,
  extraInitContainers: containers,
  extraObjects: objects,
  podLabels: labels,
  commonLabels: labels,
  podAnnotations: annotations,
  commonAnnotations: annotations,
  labels,
};

const isLoose = ({ form }: Value): boolean => Array.isArray(form["type"]);

function numbers({ form }: Value): fc.Arbitrary<number> {
  const { minimum, maximum } = form as { minimum: number; maximum: number };
  const [min, max] = [Math.max(minimum, -(2 ** 31)), Math.min(maximum, 2 ** 31 - 1)];
  return fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
}

/** One of the choices, any text if the value allows any, else texts in the required form. */
function texted({ form }: Value): fc.Arbitrary<string> {
  const { enum: choices, pattern } = form as { enum?: readonly string[]; pattern?: string };
  if (choices !== undefined) return fc.constantFrom(...choices);
  if (pattern !== undefined && !awkward.every((text) => text === "" || new RegExp(pattern, "u").test(text))) {
    return fc.stringMatching(new RegExp(pattern), { maxLength: 20 });
  }
  return lines.map((text) => (text === "" ? "x" : text));
}

const makers: Readonly<Partial<Record<Value["kind"], (value: Value) => fc.Arbitrary<unknown>>>> = {
  int: (value) => (isLoose(value) ? loosely(numbers(value)) : numbers(value)),
  bool: () => loosely(fc.boolean()),
  string: texted,
  list: ({ members }) => fc.array<unknown>(members === undefined ? texts : arbitraryValues(members), { maxLength: 2 }),
  object: ({ members = {} }) => arbitraryValues(members),
};

function arbitraryOf(member: Value | ValueMembers, name: string): fc.Arbitrary<unknown> {
  const arbitrary = special[name] ?? (isValue(member) ? makers[member.kind]?.(member) : arbitraryValues(member));
  if (arbitrary === undefined) throw new Error(`no values are made up for ${name}`);
  return arbitrary;
}

const hasDefault = (member: Value | ValueMembers): boolean => !isValue(member) || member.about.default !== undefined;

/** A value or null, if there is a default that Helm could remove. */
const removable = (member: Value | ValueMembers, value: fc.Arbitrary<unknown>) =>
  hasDefault(member) ? fc.option(value, { nil: null, freq: 15 }) : value;

const mandatory = (member: Value | ValueMembers): boolean => isValue(member) && member.about.required === true;

/** Value sets that a schema allows: any part may be missing, or removed by null. */
export function arbitraryValues(values: ValueMembers): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(values);
  const members = fields.map(([name, field]) => [name, removable(field, arbitraryOf(field, name))] as const);
  const requiredKeys = fields.filter(([, field]) => mandatory(field)).map(([name]) => name);
  const made = fc.record(Object.fromEntries(members), { requiredKeys, noNullPrototype: true });
  return made.map((given) => {
    const { hostNetwork, iptablesMode } = TAKEN;
    const surged = isSurgeTaken(given) ? {} : { hostNetwork };
    const moded = isModeTaken(given) ? {} : { iptablesMode };
    return { ...given, ...surged, ...moded };
  });
}

/** The replacement of a value that conflicts with another. */
const TAKEN = { hostNetwork: false, iptablesMode: "native" };

/** With hostNetwork the charts refuse that a new pod starts before the old one ends. */
const isSurgeTaken = ({ hostNetwork, updateStrategy }: Record<string, unknown>): boolean =>
  String(hostNetwork) !== "true" || updateStrategy === undefined || updateStrategy === null;

/** With the NRI plugin the charts refuse modes that need programs of the host. */
const isModeTaken = ({ iptablesMode, nri }: Record<string, unknown>): boolean =>
  String((nri as { readonly enabled?: unknown } | null | undefined)?.enabled) !== "true" ||
  !["nft", "legacy", "plain"].includes(String(iptablesMode));

/** Sets with one value each, many for every value. */
export function singleValues(values: ValueMembers, count: number): readonly Record<string, unknown>[] {
  const fields = Object.entries(values);
  return fields.flatMap(([name, field]) =>
    [...fc.sample(arbitraryOf(field, name), { numRuns: count, seed: 1 }), ...(mandatory(field) ? [] : [null])].map(
      (value) => ({ [name]: value }),
    ),
  );
}
