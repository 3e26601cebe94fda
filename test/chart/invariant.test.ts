import fc from "fast-check";
import { arbitraryValues, singleValues } from "./arbitrary";
import { constructed, type OwnChart, ownCharts, renderedText } from "./charts";
import { byName, helmSuite, withValues } from "./helm";
import { renderAll } from "./umbrella";

/** How many value sets one run of helm renders, and how many such runs there are. */
const BATCH = 40;
const RUNS = 10;

type Objects = ReturnType<typeof byName>;

function byHelm(chart: OwnChart, sets: readonly object[], namespace: string): readonly Objects[] {
  const rendered = renderAll(chart, sets, namespace);
  return sets.map((_, index) => byName(rendered[index] ?? []));
}

/** Names the values with which to repeat a failure. */
function blaming(set: object, namespace: string, attempt: () => unknown): void {
  try {
    attempt();
  } catch (cause) {
    throw new Error(`in namespace ${namespace}, with the values ${JSON.stringify(set)}`, { cause });
  }
}

function expectSame(chart: OwnChart, sets: readonly object[], namespace: string): void {
  let rendered: readonly Objects[];
  try {
    rendered = byHelm(chart, sets, namespace);
  } catch (cause) {
    // One of them, or helm itself: then it is all of them.
    for (const set of sets) blaming(set, namespace, () => byHelm(chart, [set], namespace));
    throw new Error("helm failed with all of them, and with none by itself", { cause });
  }
  for (const [index, set] of sets.entries()) {
    blaming(set, namespace, () => expect(rendered[index]).toEqual(byName(constructed(chart, set, namespace))));
  }
}

/** Without the counterexample, which is many sets in one line: the cause names the one. */
function report<T>({ failed, seed, counterexamplePath, errorInstance }: fc.RunDetails<T>): void {
  if (failed) throw new Error(`seed ${seed}, path ${counterexamplePath}`, { cause: errorInstance });
}

for (const [name, chart] of ownCharts) {
  helmSuite(`${name}: for any values, helm renders what the constructs make`, () => {
    const namespaces = fc.constantFrom("linkerd-cni", "mesh", "kube-system", "a-1");
    const { values } = chart;

    test(`${BATCH * RUNS} random value sets`, () => {
      const sets = fc.array(arbitraryValues(values), { minLength: BATCH, maxLength: BATCH, size: "max" });
      const same = fc.property(sets, namespaces, (some, namespace) => expectSame(chart, some, namespace));
      fc.assert(same, { numRuns: RUNS, endOnFailure: true, reporter: report });
    });

    test("each value by itself, with its edge cases", () => {
      const sets = singleValues(values, 12);
      for (let start = 0; start < sets.length; start += BATCH)
        expectSame(chart, sets.slice(start, start + BATCH), "mesh");
    });

    test("two renders are byte-identical", () => {
      const [set] = fc.sample(arbitraryValues(values), { numRuns: 1, seed: 7 });
      const render = (file: string) => renderedText(chart, "mesh", "--values", file);
      withValues(set, (file) => expect(render(file)).toBe(render(file)));
    });
  });
}
