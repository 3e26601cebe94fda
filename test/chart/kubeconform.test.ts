/** What the charts render is valid in every version of Kubernetes, by the schemas of its objects. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LinkerdCniProps, LinkerdMultusProps } from "../../constructs";
import { linkerd2Cni, linkerdMultus, type OwnChart } from "./charts";
import { findProgram, helm, type Rendered, root } from "./helm";
import { renderAll } from "./umbrella";
import { files, given } from "./values-files";

const kubeconform = findProgram("kubeconform", process.env["KUBECONFORM"]);
const schemas = join(root, ".cache", "kubernetes-schemas");
const SUFFIX = "-local-strict";
const versions = existsSync(schemas)
  ? readdirSync(schemas)
      .map((name) => name.replace(SUFFIX, ""))
      .sort()
  : [];
const OLDEST = 25;

const lacking = [
  ...(helm === undefined ? ["helm: set HELM or put it on PATH"] : []),
  ...(kubeconform === undefined ? ["kubeconform: set KUBECONFORM or put it on PATH"] : []),
  ...(versions.length === 0 ? ["schemas of Kubernetes: .ci/run fetches them"] : []),
];
const suite = lacking.length === 0 ? describe : describe.skip;

/** Kinds that are not Kubernetes' own, or that no version has which has schemas here. */
const SKIPPED = ["Certificate", "Issuer", "PodMonitor", "PodSecurityPolicy", "PrometheusRule"];

/** Kinds that values files ask for, and the first version of Kubernetes that has them. */
const SINCE: readonly (readonly [minor: number, ...kinds: string[]])[] = [
  [30, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
  [36, ...["", "Binding"].map((of) => `admissionregistration.k8s.io/v1/MutatingAdmissionPolicy${of}`)],
];
const skippedIn = (minor: number) => [
  ...SKIPPED,
  ...SINCE.flatMap(([since, ...kinds]) => (minor < since ? kinds : [])),
];

const on = { enabled: true };

/** Every resource of the chart, as a version of Kubernetes has it. */
function everything(minor: number): LinkerdCniProps {
  const admissionPolicy = minor >= 36 ? "v1" : minor >= 34 ? "v1beta1" : "";
  return {
    ...(minor >= 30
      ? { appArmorProfile: { type: "Localhost", localhostProfile: "cni" } }
      : { podAnnotations: { "container.apparmor.security.beta.kubernetes.io/install-cni": "localhost/cni" } }),
    enablePSP: true,
    grafanaDashboard: on,
    networkPolicy: on,
    nodeTaint: {
      ...on,
      ownNodeOnly: minor >= 30,
      admissionPolicy,
    },
    nri: { ...on, require: { admissionPolicy } },
    platform: "openshift",
    podMonitor: on,
    priorityClassName: "system-node-critical",
    prometheusRule: on,
    repairController: on,
    resourceQuota: { create: "always" },
    resources: { cpu: { limit: "100m" }, memory: { request: "48Mi" }, "ephemeral-storage": { request: "1Gi" } },
  };
}

const multus: readonly LinkerdMultusProps[] = [
  {},
  { networkPolicy: on, podMonitor: on, prometheusRule: on, webhook: { certificates: "cert-manager" } },
];

/** Has kubeconform read what was rendered. @throws an Error with what is not valid, by the number of its set */
function validate(rendered: readonly (readonly Rendered[])[], version: string): { valid: number; skipped: number } {
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

const minorOf = (version: string) => Number(version.split(".")[1]);

suite(`kubeconform${lacking.length === 0 ? "" : ` (no ${lacking.join("; no ")})`}`, () => {
  const taken = files.filter((name) => !/^refused-|-with-image/.test(name)).map(given);

  test("there are schemas of each version from the oldest on, and many values files", () => {
    expect(versions.map(minorOf)).toEqual(versions.map((_, index) => OLDEST + index));
    expect(versions.length).toBeGreaterThanOrEqual(13);
    expect(taken.length).toBeGreaterThanOrEqual(20);
  });

  const rendered = new Map<string, readonly (readonly Rendered[])[]>();

  /** What helm renders, once for versions that are given the same values. */
  function renders(chart: OwnChart, sets: readonly object[], version: string): readonly (readonly Rendered[])[] {
    const key = chart.name + JSON.stringify(sets);
    const known = rendered.get(key) ?? renderAll(chart, sets, "linkerd-cni", "--kube-version", version);
    rendered.set(key, known);
    return known;
  }

  test.each(versions)("%s takes what the charts render", (version) => {
    const cni = [...taken, everything(minorOf(version))];
    const manifests = [...renders(linkerd2Cni, cni, version), ...renders(linkerdMultus, multus, version)];
    const { valid, skipped } = validate(manifests, version);
    expect(valid + skipped).toBe(manifests.flat().length);
    expect(valid).toBeGreaterThan(200);
  });

  test("a field that a version does not have is found", () => {
    const [manifests = []] = renderAll(linkerd2Cni, [{}], "linkerd-cni");
    const wrong = manifests.map((each) => (each.kind === "ConfigMap" ? { ...each, datum: {} } : each));
    expect(() => validate([wrong], versions.at(-1) ?? "")).toThrow("additional properties 'datum' not allowed");
  });
});
