import { App, Chart } from "cdk8s";
import fc from "fast-check";
import { LinkerdCni, type LinkerdCniProps, values, version } from "../../constructs";
import { arbitraryValues, singleValues } from "./arbitrary";
import { byName, helm, type Rendered, template, withValues } from "./helm";
import { renderAll } from "./umbrella";

const suite = helm === undefined ? describe.skip : describe;
const title = helm === undefined ? " (no helm: set HELM or put it on PATH)" : "";

/** How many value sets one run of helm renders, and how many such runs there are. */
const BATCH = 40;
const RUNS = 10;

function constructed(set: unknown, namespace: string): readonly Rendered[] {
  const scope = new Chart(new App(), "chart");
  new LinkerdCni(scope, "cni", { ...(set as LinkerdCniProps), namespace });
  return scope.toJson() as Rendered[];
}

function expectSame(sets: readonly unknown[], namespace: string): void {
  const rendered = renderAll(sets, namespace, version);
  for (const [index, set] of sets.entries()) {
    const byHelm = { set, objects: byName(rendered[index] ?? []) };
    expect(byHelm).toEqual({ set, objects: byName(constructed(set, namespace)) });
  }
}

suite(`for any values, helm renders what the constructs make${title}`, () => {
  const namespaces = fc.constantFrom("linkerd-cni", "mesh", "kube-system", "a-1");

  test(`${BATCH * RUNS} random value sets`, () => {
    const sets = fc.array(arbitraryValues(values), { minLength: BATCH, maxLength: BATCH, size: "max" });
    fc.assert(fc.property(sets, namespaces, expectSame), { numRuns: RUNS, endOnFailure: true });
  }, 300_000);

  test("each value by itself, with its edge cases", () => {
    const sets = singleValues(values, 12);
    for (let start = 0; start < sets.length; start += BATCH) expectSame(sets.slice(start, start + BATCH), "mesh");
  }, 300_000);

  test("two renders are byte-identical", () => {
    const [set] = fc.sample(arbitraryValues(values), { numRuns: 1, seed: 7 });
    withValues(set, (path) => expect(template("--values", path)).toEqual(template("--values", path)));
  });
});
