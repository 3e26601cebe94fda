import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { App } from "cdk8s";
import { linkerdMultus, linkerdMultusChart, linkerdMultusManifests } from "./linkerd-multus";
import { linkerd2Cni, linkerdCniChart, linkerdCniManifests } from "./linkerd2-cni";

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

/** Writes the charts and the manifests. */
export async function synthesize(root: string): Promise<void> {
  for (const [folder, files] of synthesized()) await writeFolder(join(root, "dist", folder), files);
}

/** Replaces a folder: files that are no longer generated are deleted. */
export async function writeFolder(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  const fresh = `${folder}.new`;
  await rm(fresh, { recursive: true, force: true });
  for (const [name, content] of files) {
    const path = join(fresh, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
}
