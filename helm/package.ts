import { stringify } from "yaml";
import type { HelmChart } from "./chart";
import { valuesSchema, valuesTable, valuesYaml } from "./documents";
import { isExpr } from "./expression";
import { fieldsOf, type ValueMembers } from "./value";
import { goString, writeDefinition, writeLists, writeTemplate } from "./writer";

/** The content of Chart.yaml; see Helm's documentation. */
export interface ChartMetadata {
  /** The name of the chart. */
  readonly name: string;
  /** The version of the chart, by Semantic Versioning. */
  readonly version: string;
  /** The version of the application. */
  readonly appVersion: string;
  /** One sentence about the chart. */
  readonly description: string;
  /** The versions of Kubernetes that the chart accepts, such as `>=1.25.0-0`. */
  readonly kubeVersion: string;
  /** URL of the project. @default none */
  readonly home?: string;
  /** URL of an icon. @default none */
  readonly icon?: string;
  /** URLs of the sources. @default none */
  readonly sources?: readonly string[];
  /** @default none */
  readonly maintainers?: readonly { readonly name: string; readonly email?: string; readonly url?: string }[];
  /** Words by which a registry finds the chart. @default none */
  readonly keywords?: readonly string[];
  /** Facts for a registry, such as Artifact Hub. @default none */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What a Helm chart is made from. */
export interface ChartPackage {
  /** The constructs. */
  readonly chart: HelmChart;
  /** The content of Chart.yaml. */
  readonly metadata: ChartMetadata;
  /** Its values, as `valuesOf` makes them. */
  readonly values: ValueMembers;
  /** Values that it accepts and ignores: the reason by name. @default none */
  readonly ignored?: Readonly<Record<string, string>>;
  /** The text of README.md before the table of values. */
  readonly introduction: string;
  /** The beginning of NOTES.txt, a template; it ends with the given values that the chart does not have. @default none */
  readonly notes?: string;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: unknown };
}

/** The file of a template: its kind, and its name if the chart has several objects of that kind. */
function fileName(manifest: Manifest, all: readonly Manifest[]): string {
  const alone = all.filter(({ kind }) => kind === manifest.kind).length === 1;
  const name = typeof manifest.metadata.name === "string" ? `-${manifest.metadata.name}` : "";
  return `templates/${manifest.kind.toLowerCase()}${alone ? "" : name}.yaml`;
}

type Path = readonly string[];

/** The paths of all values that expressions read, beginning with `Values`. */
function valuesRead(data: unknown): readonly Path[] {
  if (typeof data !== "object" || data === null) return [];
  // A named template gets the root, without a path: it reads the values named in its definition.
  if (isExpr(data) && data.$helm.op === "ref") return data.$helm.path.length > 0 ? [data.$helm.path] : [];
  return Object.values(data).flatMap(valuesRead);
}

/**
 * Whether a chart has a value: not if a construct's prop replaces it, or the resource that reads it is disabled.
 *
 * @param read the paths of the values that templates read
 */
function isUsed(chart: HelmChart, read: readonly Path[], path: Path): boolean {
  const startsWith = (path: Path, start: Path) => start.every((key, index) => path[index] === key);
  const at = ["Values", ...path];
  const isOwned = chart.owned.some((owned) => owned.join() === at.join());
  return !isOwned || read.some((other) => startsWith(other, at) || startsWith(at, other));
}

/** Values that parent charts pass to every chart: Helm's own, and the one that their `condition` usually names. */
export const FROM_PARENTS: readonly string[] = ["global", "tags", "enabled"];

/**
 * The end of NOTES.txt: a line for each given value that the chart does not have, with the reason or the name that was
 * probably meant. That name differs in at most two neighbouring letters.
 */
function unknownNotes(known: readonly string[], ignored: Readonly<Record<string, string>>): string {
  const reasons = Object.entries(ignored).map((entry) => entry.map(goString).join(" "));
  return `{{- $known := list ${known.map(goString).join(" ")} }}
{{- $ignored := dict ${reasons.join(" ")} }}
{{- range $name, $value := .Values }}
{{- if not (or (kindIs "invalid" $value) (has $name $known)) }}
{{- $meant := "" }}
{{- range $other := $known }}
{{- range $at := until (len $other) }}
{{- $start := substr 0 $at $other | regexQuoteMeta }}
{{- $end := substr (min (add $at 2) (len $other) | int) -1 $other | regexQuoteMeta }}
{{- if regexMatch (printf "(?i)^%s.{0,3}%s$" $start $end) $name }}{{ $meant = $other }}{{ end }}
{{- end }}
{{- end }}

NOTE: {{ if hasKey $ignored $name -}}
the value {{ $name }} is ignored: {{ get $ignored $name }}.
{{- else -}}
the chart has no value {{ $name }}{{ if $meant }}: did you mean {{ $meant }}?{{ else }}, which is ignored.{{ end }}
{{- end }}
{{- end }}
{{- end }}
`;
}

/** The values that the text of a template reads. */
const textReads = (text: string): readonly Path[] =>
  [...text.matchAll(/\.(Values(?:\.\w+)+)/g)].map(([, path = ""]) => path.split("."));

/** All files of a Helm chart, by path. It has only the values that it reads. */
export function chartFiles({
  chart,
  metadata,
  values,
  ignored = {},
  introduction,
  notes = "",
}: ChartPackage): ReadonlyMap<string, string> {
  const manifests = chart.toJson() as Manifest[];
  const read = [...[manifests, [...chart.definitions.values()], chart.lists].flatMap(valuesRead), ...textReads(notes)];
  const has = (path: Path) => isUsed(chart, read, path);
  const fields = fieldsOf(values).filter(({ path }) => has(path));
  const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;
  const files = new Map<string, string>([
    ["Chart.yaml", stringify({ apiVersion: "v2", type: "application", ...metadata }, { lineWidth: 0 })],
    ["values.yaml", valuesYaml(fields, `Default values of ${metadata.name}.`)],
    ["values.schema.json", json(valuesSchema(values, `Values of ${metadata.name}`, has))],
    ["README.md", `# ${metadata.name}\n\n${introduction.trim()}\n\n## Values\n\n${valuesTable(fields)}\n`],
  ]);
  const roots = new Set([...fields.map(({ path: [root = ""] }) => root), ...FROM_PARENTS]);
  files.set("templates/NOTES.txt", `${notes}${unknownNotes([...roots], ignored)}`);
  for (const [name, data] of chart.definitions) files.set(`templates/_${name}.tpl`, writeDefinition(name, data));
  if (chart.lists.length > 0) files.set("templates/extra-objects.yaml", writeLists(chart.lists));
  for (const manifest of manifests) {
    const name = fileName(manifest, manifests);
    if (files.has(name)) throw new Error(`two resources would both be written to ${name}: give them different names`);
    files.set(name, writeTemplate({ ...manifest }));
  }
  return files;
}
