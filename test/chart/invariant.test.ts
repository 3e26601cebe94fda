import fc from "fast-check";
import { arbitraryValues, singleValues } from "./arbitrary";
import { constructed, type OwnChart, ownCharts, renderedText } from "./charts";
import { byName, helm, withValues } from "./helm";
import { renderAll } from "./umbrella";

const suite = helm === undefined ? describe.skip : describe;
const title = helm === undefined ? " (no helm: set HELM or put it on PATH)" : "";

/** How many value sets one run of helm renders, and how many such runs there are. */
const BATCH = 40;
const RUNS = 10;

function expectSame(chart: OwnChart, sets: readonly object[], namespace: string): void {
  const rendered = renderAll(chart, sets, namespace);
  for (const [index, set] of sets.entries()) {
    const byHelm = { set, objects: byName(rendered[index] ?? []) };
    expect(byHelm).toEqual({ set, objects: byName(constructed(chart, set, namespace)) });
  }
}

suite.each(ownCharts)(`%s: for any values, helm renders what the constructs make${title}`, (_, chart) => {
  const namespaces = fc.constantFrom("linkerd-cni", "mesh", "kube-system", "a-1");
  const { values } = chart;

  test(`${BATCH * RUNS} random value sets`, () => {
    const sets = fc.array(arbitraryValues(values), { minLength: BATCH, maxLength: BATCH, size: "max" });
    const same = fc.property(sets, namespaces, (some, namespace) => expectSame(chart, some, namespace));
    fc.assert(same, { numRuns: RUNS, endOnFailure: true });
  }, 300_000);

  test("each value by itself, with its edge cases", () => {
    const sets = singleValues(values, 12);
    for (let start = 0; start < sets.length; start += BATCH)
      expectSame(chart, sets.slice(start, start + BATCH), "mesh");
  }, 300_000);

  test("two renders are byte-identical", () => {
    const [set] = fc.sample(arbitraryValues(values), { numRuns: 1, seed: 7 });
    const render = (file: string) => renderedText(chart, "mesh", "--values", file);
    withValues(set, (file) => expect(render(file)).toBe(render(file)));
  });
});
