import { capabilities } from "./chart";
import { assert, each, items, present, spread, when } from "./control";
import { type Expr, ref } from "./expression";
import {
  bool,
  compact,
  concat,
  eq,
  int,
  merge,
  orElse,
  sha256,
  split,
  text,
  toJson,
  toPrettyJson,
  trim,
} from "./functions";
import { writeTemplate } from "./writer";

const name = ref<string>("string", "Values", "name");
const count = int(ref<number>("any", "Values", "count"));
const enabled = bool(ref<boolean>("any", "Values", "enabled"));
const labels = ref<Record<string, string>>("map", "Values", "labels");
const list = ref<readonly string[]>("list", "Values", "list");
const dashed = ref<string>("any", "Values", "a", "b-c", "d");

/** The output for the value of one key. */
const cases: Readonly<Record<string, readonly [unknown, string]>> = {
  "text is quoted": [name, "key: {{ .Values.name | quote }}"],
  "numbers are not": [count, "key: {{ .Values.count | int }}"],
  "booleans are not": [enabled, 'key: {{ eq (toString .Values.enabled) "true" }}'],
  "text of a number is quoted once": [text(count), "key: {{ .Values.count | int | quote }}"],
  "a value that may be text or a number is JSON": [
    dashed,
    'key: {{ (index (default dict .Values.a) "b-c").d | toJson }}',
  ],
  "texts are joined": [concat("100%/", name), 'key: {{ printf "100%%/%v" .Values.name | quote }}'],
  "a choice within a text": [
    concat("x-", when(enabled, "a", "b")),
    'key: {{ printf "x-%v" (ternary "a" "b" (eq (toString .Values.enabled) "true")) | quote }}',
  ],
  "a default for an empty value": [orElse(name, "x"), 'key: {{ .Values.name | default "x" | quote }}'],
  "capabilities of the cluster": [
    each(list, "api", () => when(capabilities.has("a/v1"), capabilities.kubeVersion)),
    'key:\n  {{- range $api := .Values.list }}\n  {{- if $.Capabilities.APIVersions.Has "a/v1" }}\n' +
      "  - {{ $.Capabilities.KubeVersion.Version | quote }}\n  {{- end }}\n  {{- else }}\n  []\n  {{- end }}",
  ],
  "functions of functions": [sha256(toJson(list)), "key: {{ .Values.list | toJson | sha256sum | quote }}"],
  "a literal that looks like a template": ["{{ x }}", 'key: {{ "{{ x }}" | quote }}'],
  "a key that looks like a template": [{ "{{ x }}": 1 }, 'key:\n  {{ "{{ x }}" | quote }}: 1'],
  "a literal that looks like another type": ["true", 'key: "true"'],
  "empty literals": [{ a: [], b: {} }, "key:\n  a: []\n  b: {}"],
  "a map": [labels, "key:\n  {{- toYaml .Values.labels | nindent 2 }}"],
  "a map among entries": [
    { ...spread(labels), own: "x" },
    'key:\n  own: x\n  {{- range $key, $value := omit .Values.labels "own" }}\n  {{- if not (kindIs "invalid" $value) }}' +
      "\n  {{ $key | quote }}: {{ $value | toJson }}\n  {{- end }}\n  {{- end }}",
  ],
  "maps merged": [
    { ...spread(merge(labels, labels)), own: "x" },
    'key:\n  own: x\n  {{- range $key, $value := omit (merge dict .Values.labels .Values.labels) "own" }}' +
      '\n  {{- if not (kindIs "invalid" $value) }}' +
      "\n  {{ $key | quote }}: {{ $value | toJson }}\n  {{- end }}\n  {{- end }}",
  ],
  "a map that may be empty": [
    { ...spread(labels) },
    "{{- if without (values .Values.labels) nil }}\nkey:\n  {{- range $key, $value := .Values.labels }}" +
      '\n  {{- if not (kindIs "invalid" $value) }}\n  {{ $key | quote }}: {{ $value | toJson }}' +
      "\n  {{- end }}\n  {{- end }}\n{{- end }}",
  ],
  "many lines": [toPrettyJson(list), "key: |-\n  {{- .Values.list | toPrettyJson | nindent 2 }}"],
  "a key on condition": [
    when(enabled, name),
    '{{- if eq (toString .Values.enabled) "true" }}\nkey: {{ .Values.name | quote }}\n{{- end }}',
  ],
  "one of two": [
    when(eq(name, "x"), { a: 1 }, { b: 2 }),
    '{{- if eq .Values.name "x" }}\nkey:\n  a: 1\n{{- else }}\nkey:\n  b: 2\n{{- end }}',
  ],
  "a key that may be empty": [
    present(list),
    "{{- with .Values.list }}\nkey:\n  {{- toYaml . | nindent 2 }}\n{{- end }}",
  ],
  "items made of a list": [
    each(compact(split(trim(name), ",")), "port", (port) => int(port as Expr<string>)),
    'key:\n  {{- range $port := .Values.name | trim | splitList "," | compact }}\n  - {{ $port | int }}\n' +
      "  {{- else }}\n  []\n  {{- end }}",
  ],
  "items among others, with the root in reach": [
    ["x", ...items(each(list, "item", (item) => ({ item: text(item), name })))],
    "key:\n  - x\n  {{- range $item := .Values.list }}\n  - name: {{ $.Values.name | quote }}\n" +
      "    item: {{ $item | quote }}\n  {{- end }}",
  ],
  "an item on condition": [
    ["x", when(enabled, { a: "y" })],
    'key:\n  - x\n  {{- if eq (toString .Values.enabled) "true" }}\n  - a: "y"\n  {{- end }}',
  ],
  "a check": [
    assert(eq(name, "x"), concat("bad ", name), name),
    '{{- if not (eq .Values.name "x") }}\n  {{- fail (printf "bad %v" .Values.name) }}\n{{- end }}\n' +
      "key: {{ .Values.name | quote }}",
  ],
};

test.each(Object.entries(cases))("%s", (_, [value, expected]) => {
  expect(writeTemplate({ key: value, last: 1 })).toBe(`${expected}\nlast: 1\n`);
});

test("a template does not end with a value's text, from which Helm would trim white space", () => {
  const end = "...\n";
  const maybe = "{{- with .Values.list }}\nkey:\n  {{- toYaml . | nindent 2 }}\n{{- end }}\n";
  expect(writeTemplate({ key: present(list) })).toBe(`${maybe}${end}`);
  const behind = '{{- if eq .Values.name "x" }}\nlast: 1\n{{- end }}\n';
  expect(writeTemplate({ key: present(list), last: when(eq(name, "x"), 1) })).toBe(`${maybe}${behind}${end}`);
  const lines = "key: |-\n  {{- .Values.list | toPrettyJson | nindent 2 }}\n";
  expect(writeTemplate({ $when: enabled, key: toPrettyJson(list) })).toBe(
    `{{- if eq (toString .Values.enabled) "true" }}\n${lines}${end}{{- end }}\n`,
  );
});

test("a whole manifest on condition", () => {
  const template = writeTemplate({ $when: enabled, kind: "Role", apiVersion: "v1" });
  expect(template).toBe('{{- if eq (toString .Values.enabled) "true" }}\napiVersion: v1\nkind: Role\n{{- end }}\n');
});

test("absent values are left out, and an empty list stays", () => {
  const template = writeTemplate({ a: undefined, b: [undefined, [], {}], c: when(enabled, { d: undefined, e: name }) });
  expect(template).toBe(
    'b:\n  - []\n  - {}\n{{- if eq (toString .Values.enabled) "true" }}\nc:\n  e: {{ .Values.name | quote }}\n{{- end }}\n',
  );
});

test("characters that parsers read differently are escaped", () => {
  expect(writeTemplate({ a: "\ufeff", b: "/\u00a0", c: "\u2028x" })).toBe(
    'a: "\\ufeff"\nb: "/\\u00a0"\nc: "\\u2028x"\n',
  );
});

test("maps known to be empty add nothing to a merge", () => {
  expect(merge({}, labels, {})).toEqual(merge(labels));
});

test("only one map can be spread into another", () => {
  const other = ref<Record<string, string>>("map", "Values", "other");
  expect(() => writeTemplate({ key: { ...spread(labels), ...spread(other) } })).toThrow("merge several before");
});

test("the same functions compute known values", () => {
  expect(concat("100%/", "x", 1)).toBe("100%/x1");
  expect(when(bool("true"), "a", "b")).toBe("a");
  expect([orElse("", "b"), orElse("a", "b")]).toEqual(["b", "a"]);
  expect(each(compact(split(trim("1, 2,"), ",")), "port", int)).toEqual([1, 2]);
  expect({ ...spread({ own: "y", other: "z" }), own: "x" }).toEqual({ own: "x", other: "z" });
  expect(merge({ a: "", b: "1" }, { a: "2", b: "3" })).toEqual({ a: "2", b: "1" });
  expect(toJson({ b: "<&>", a: [1, true] })).toBe('{"a":[1,true],"b":"\\u003c\\u0026\\u003e"}');
  expect(() => assert(eq("a", "b"), "a is not b", "a")).toThrow("a is not b");
});
