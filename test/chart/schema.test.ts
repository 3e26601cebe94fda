import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import fc from "fast-check";
import { values } from "../../constructs";
import { arbitraryValues } from "./arbitrary";
import { chart } from "./helm";

const schema = JSON.parse(readFileSync(join(chart, "values.schema.json"), "utf8")) as {
  properties: Record<string, unknown>;
};
const accepts = new Ajv({ strict: false, allErrors: true }).compile(schema);
const defaults = values.parse({});

type Map = Record<string, unknown>;
const isMap = (value: unknown): value is Map => typeof value === "object" && value !== null && !Array.isArray(value);

/** The values that Helm checks: those given, over the chart's own. */
function coalesced(under: Map, over: Map): Map {
  const entries = Object.entries(over).map(([key, value]) => {
    const base = under[key];
    return [key, isMap(base) && isMap(value) ? coalesced(base, value) : value];
  });
  return { ...under, ...Object.fromEntries(entries) };
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

const paths = Object.keys(defaults).flatMap((key) => {
  const value = (defaults as Map)[key];
  return isMap(value) ? [[key], ...Object.keys(value).map((inner) => [key, inner])] : [[key]];
});
const unknown = [["nonsense"], ["image", "tag"], ["resources", "gpu"]];

/** Values that Helm takes away or gives as null before a chart sees them are not the same as values given. */
const nulls = (value: unknown): boolean =>
  value === null || (typeof value === "object" && Object.values(value as object).some(nulls));

const changes = fc
  .tuple(fc.constantFrom(...paths, ...unknown, ["nodeAffinity"], ["seLinuxOptions"]), anything)
  .filter(([, value]) => !nulls(value))
  .map(([path, value]) => path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Map);

describe("values.schema.json and the constructs accept the same values", () => {
  test("values that are right", () => {
    fc.assert(
      fc.property(arbitraryValues(values), (given) => {
        expect(values.safeParse(given).error?.issues).toBeUndefined();
        accepts(coalesced(defaults, given));
        expect(accepts.errors).toBeNull();
      }),
      { numRuns: 300 },
    );
  });

  test("values that may be wrong", () => {
    fc.assert(
      fc.property(changes, (given) => {
        const parsed = values.safeParse(given);
        // The ends of ranges are compared by the templates: a JSON schema cannot.
        fc.pre(!parsed.error?.issues.some(({ code }) => code === "custom"));
        expect({ given, accepted: accepts(coalesced(defaults, given)) }).toEqual({ given, accepted: parsed.success });
      }),
      { numRuns: 3000 },
    );
  });
});
