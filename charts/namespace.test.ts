import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NAMESPACE_LABELS } from "../constructs/namespace";
import { makeNamespace } from "./namespace";

const read = (page: string): string => readFileSync(join(__dirname, "..", page), "utf8");

const manuals = [
  "README.md",
  "docs/multus.md",
  "dist/charts/linkerd2-cni/README.md",
  "dist/charts/linkerd-multus/README.md",
];
const examples = ["k3s-values.yaml", "openshift-values.yaml", "openshift-multus/scc.yaml"];

/** The commands of a document, block by block, and those in an example's first comment. */
function commands(page: string): readonly string[] {
  const blocks = page.endsWith(".md") ? read(page).match(/^```sh\n.*?^```$/gms) : [read(page).replace(/^# {3}/gm, "")];
  return (blocks ?? []).map((block) => block.replace(/^oc /gm, "kubectl "));
}

const pages = [...manuals, ...examples.map((name) => `examples/${name}`)];

test.each(pages)("%s: the namespace has its labels before it has pods", (page) => {
  const made = makeNamespace("linkerd-cni", NAMESPACE_LABELS);
  const use = /^(?:helm install linkerd-cni|kubectl adm|kubectl apply -f scc\.yaml)/m;
  const using = commands(page).filter((block) => use.test(block));
  expect(using.length).toBeGreaterThan(0);
  for (const block of using) expect(block.split(use)[0]).toContain(made);
});

test("the notes of linkerd2-cni label the release's namespace", () => {
  const notes = read("dist/charts/linkerd2-cni/templates/NOTES.txt");
  const label = makeNamespace("{{ .Release.Namespace }}", NAMESPACE_LABELS).split("\n")[1];
  expect(notes).toContain(label);
});

test.each(manuals.filter((page) => page.includes("multus")))("%s leaves redirecting to Multus", (page) => {
  expect(read(page)).toContain("helm install linkerd-cni -n linkerd-cni --set chained=false ");
});
