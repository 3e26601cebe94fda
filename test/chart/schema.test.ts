import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import fc from "fast-check";
import { readValues } from "../../helm/read";
import { arbitraryValues } from "./arbitrary";
import { ownCharts } from "./charts";

type Map = Record<string, unknown>;
const isMap = (value: unknown): value is Map => typeof value === "object" && value !== null && !Array.isArray(value);

/** The values that Helm checks: given values merged over the chart's, without those removed by null. */
function coalesced(under: Map, over: Map): Map {
  const entries = Object.entries(over).map(([key, value]) => {
    const base = under[key];
    return [key, isMap(base) && isMap(value) ? coalesced(base, value) : value];
  });
  const all = Object.entries({ ...under, ...Object.fromEntries(entries) });
  return Object.fromEntries(all.filter(([key, value]) => value !== null || !(key in under)));
}

/** Values of any type, for any value. */
const anything = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.integer({ min: -3, max: 70_000 }),
  fc.boolean(),
  fc.constantFrom(
    1.5,
    null,
    "",
    "true",
    "4143",
    "04143",
    "-1",
    "/x",
    "x\ny",
    "25%",
    "100m",
    "debug",
    "80-90",
    "1,2",
    [],
    {},
    [{}],
    { a: "b" },
    { a: 1 },
  ),
);

/** The root is open: values-files.test.ts has values that charts share. */
const unknown = [
  ["image", "tag"],
  ["resources", "gpu"],
];

/** Values that are there only when they are given. */
const optional: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "linkerd2-cni": [["nodeAffinity"], ["seLinuxOptions"]],
  "linkerd-multus": [["affinity"], ["webhook", "issuerRef"]],
};

/** The path of a value or a group. */
const pathsOf = (defaults: Map): readonly (readonly string[])[] =>
  Object.entries(defaults).flatMap(([key, value]) => [
    [key],
    ...(isMap(value) ? pathsOf(value).map((inner) => [key, ...inner]) : []),
  ]);

/** Values that Helm removes or passes as null before rendering differ from given values. */
const nulls = (value: unknown): boolean =>
  value === null || (typeof value === "object" && Object.values(value as object).some(nulls));

describe.each(ownCharts)("%s: values.schema.json and the constructs accept the same values", (name, chart) => {
  const { path, values } = chart;
  const schema = JSON.parse(readFileSync(join(path, "values.schema.json"), "utf8")) as object;
  const accepts = new Ajv({ strict: false, allErrors: true }).compile(schema);
  const defaults = readValues(values, {}).values;
  const changes = fc
    .tuple(fc.constantFrom(...pathsOf(defaults), ...unknown, ...(optional[name] ?? [])), anything)
    .filter(([, value]) => !nulls(value))
    .map(([keys, value]) => keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Map);

  test("values that are right", () => {
    fc.assert(
      fc.property(arbitraryValues(values), (given) => {
        expect(readValues(values, given).problems).toEqual([]);
        accepts(coalesced(defaults, given));
        expect(accepts.errors).toBeNull();
      }),
      { numRuns: 300 },
    );
  });

  test("values that may be wrong", () => {
    fc.assert(
      fc.property(changes, (given) => {
        const { problems } = readValues(values, given);
        // A JSON schema compares no numbers in texts: templates, or the programs, do.
        fc.pre(
          !problems.some((problem) =>
            /: "-?\d+" is (less|more) than| has .*, which is not a port|digest/s.test(problem),
          ),
        );
        const accepted = accepts(coalesced(defaults, given));
        expect({ given, problems: problems.length > 0, accepted }).toEqual({ given, problems: !accepted, accepted });
      }),
      { numRuns: 3000 },
    );
  });
});
