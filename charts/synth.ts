import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { App } from "cdk8s";
import { linkerd2Cni, linkerdCniManifests } from "./linkerd2-cni";
import { propsSource } from "./props-source";
import { writeFolder } from "./write";

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - linkerd-cni.yaml
`;

/** All that synthesis makes: folders of files, by path under `dist`. */
export function synthesized(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const app = () => new App({ outdir: join(".cache", "cdk8s") });
  return new Map([
    [join("charts", "linkerd2-cni"), linkerd2Cni(app())],
    [
      "manifests",
      new Map([
        ["linkerd-cni.yaml", linkerdCniManifests(app())],
        ["kustomization.yaml", kustomization],
      ]),
    ],
  ]);
}

/** Writes the charts, the manifests, and what the constructs' sources take from the values. */
export async function synthesize(root: string): Promise<void> {
  await writeFile(join(root, "constructs", "props.ts"), propsSource());
  for (const [folder, files] of synthesized()) await writeFolder(join(root, "dist", folder), files);
}
