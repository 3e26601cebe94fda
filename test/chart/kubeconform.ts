import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram, helm, type Rendered, root } from "./helm";

const kubeconform = findProgram("kubeconform", process.env["KUBECONFORM"]);
const schemas = join(root, ".cache", "kubernetes-schemas");
const SUFFIX = "-local-strict";
/** The versions of Kubernetes with schemas, oldest first. */
export const versions = existsSync(schemas)
  ? readdirSync(schemas)
      .map((name) => name.replace(SUFFIX, ""))
      .sort()
  : [];
export const OLDEST = 25;

/** Missing requirements of a validation. */
export const lacking = [
  ...(helm === undefined ? ["helm: set HELM or put it on PATH"] : []),
  ...(kubeconform === undefined ? ["kubeconform: set KUBECONFORM or put it on PATH"] : []),
  ...(versions.length === 0 ? ["schemas of Kubernetes: .ci/run fetches them"] : []),
];

/** Kinds that are not Kubernetes' own, or that no version has which has schemas here. */
const SKIPPED = ["Certificate", "Issuer", "PodMonitor", "PrometheusRule"];

/** Kinds that values files ask for, and the first version of Kubernetes that has them. */
const SINCE: readonly (readonly [minor: number, ...kinds: string[]])[] = [
  [30, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
  [36, ...["", "Binding"].map((of) => `admissionregistration.k8s.io/v1/MutatingAdmissionPolicy${of}`)],
];
const skippedIn = (minor: number) => [
  ...SKIPPED,
  ...SINCE.flatMap(([since, ...kinds]) => (minor < since ? kinds : [])),
];

/**
 * Validates rendered manifests by kubeconform. @throws an Error with the invalid objects, by the number of their set
 */
export function validate(
  rendered: readonly (readonly Rendered[])[],
  version: string,
): { valid: number; skipped: number } {
  const folder = mkdtempSync(join(tmpdir(), "kubeconform-"));
  try {
    for (const [index, manifests] of rendered.entries()) {
      const text = manifests.map((manifest) => JSON.stringify(manifest)).join("\n---\n");
      writeFileSync(join(folder, `${index}.yaml`), text);
    }
    const location = join(schemas, `${version}${SUFFIX}`, "{{ .ResourceKind }}{{ .KindSuffix }}.json");
    const flags = [
      "-strict",
      "-summary",
      "-output=json",
      `-skip=${skippedIn(minorOf(version))}`,
      `-schema-location=${location}`,
    ];
    const out = execFileSync(kubeconform ?? "", [...flags, `-kubernetes-version=${version.slice(1)}`, folder], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    return (JSON.parse(out) as { summary: { valid: number; skipped: number } }).summary;
  } catch (error) {
    throw new Error(`kubeconform for ${version}: ${(error as { stdout?: string }).stdout}`, { cause: error });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const minorOf = (version: string) => Number(version.split(".")[1]);
