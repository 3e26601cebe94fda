import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { App } from "cdk8s";
import { linkerdMultus, linkerdMultusChart, linkerdMultusManifests } from "./linkerd-multus";
import { linkerd2Cni, linkerdCniChart, linkerdCniManifests } from "./linkerd2-cni";
import { propsSources } from "./props-source";
import { writeFolder } from "./write";

const kustomization = (resource: string): string => `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ${resource}
`;

/** The default renders. Each chart's kustomization has its own folder, since kustomize does not read files above it. */
function manifests(app: () => App): ReadonlyMap<string, string> {
  const multus = linkerdMultusManifests(app());
  return new Map([
    ["linkerd-cni.yaml", linkerdCniManifests(app())],
    ["kustomization.yaml", kustomization("linkerd-cni.yaml")],
    ["linkerd-multus.yaml", multus],
    [join("multus", "linkerd-multus.yaml"), multus],
    [join("multus", "kustomization.yaml"), kustomization("linkerd-multus.yaml")],
  ]);
}

/** Adds what each chart renders by default, as charts of a cdk8s app. */
export function addManifests(app: App): void {
  linkerdCniChart(app);
  linkerdMultusChart(app);
}

/** All output of synthesis: folders of files, by path under `dist`. */
export function synthesized(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const app = () => new App({ outdir: join(".cache", "cdk8s") });
  return new Map([
    [join("charts", "linkerd2-cni"), linkerd2Cni(app())],
    [join("charts", "linkerd-multus"), linkerdMultus(app())],
    ["manifests", manifests(app)],
  ]);
}

/** Writes the charts, the manifests, and the source files generated from the values. */
export async function synthesize(root: string): Promise<void> {
  for (const [path, source] of propsSources()) await writeFile(join(root, path), source);
  for (const [folder, files] of synthesized()) await writeFolder(join(root, "dist", folder), files);
}
