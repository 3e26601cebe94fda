/** The charts' manifests are valid in every version of Kubernetes, by its schemas. */
import type { LinkerdCniProps, LinkerdMultusProps } from "../../constructs";
import { linkerd2Cni, linkerdMultus, type OwnChart } from "./charts";
import type { Rendered } from "./helm";
import { lacking, minorOf, OLDEST, validate, versions } from "./kubeconform";
import { renderAll } from "./umbrella";
import { files, given } from "./values-files";

const suite = lacking.length === 0 ? describe : describe.skip;

const on = { enabled: true };
const scraped = { ...on, scrapeInterval: "1m30s", scrapeTimeout: "500ms" };

/** Every resource of the chart, as a version of Kubernetes has it. */
function everything(minor: number): LinkerdCniProps {
  const admissionPolicy = minor >= 36 ? "v1" : minor >= 34 ? "v1beta1" : "";
  return {
    ...(minor >= 30
      ? { appArmorProfile: { type: "Localhost", localhostProfile: "cni" } }
      : { podAnnotations: { "container.apparmor.security.beta.kubernetes.io/install-cni": "localhost/cni" } }),
    commonAnnotations: { "argocd.argoproj.io/sync-wave": "-1" },
    extraInitContainers: [{ name: "copy", image: "tools:1", volumeMounts: [{ name: "tools", mountPath: "/tools" }] }],
    extraVolumes: [{ name: "tools", emptyDir: {} }],
    grafanaDashboard: on,
    networkPolicy: on,
    nodeTaint: {
      ...on,
      ownNodeOnly: minor >= 30,
      admissionPolicy,
    },
    nri: { ...on, require: { admissionPolicy } },
    platform: "openshift",
    podMonitor: scraped,
    priorityClassName: "system-node-critical",
    prometheusRule: on,
    repairController: on,
    resourceQuota: { create: "always" },
    resources: { cpu: { limit: "100m" }, memory: { request: "48Mi" }, "ephemeral-storage": { request: "1Gi" } },
  };
}

const multus: readonly LinkerdMultusProps[] = [
  {},
  { networkPolicy: on, podMonitor: scraped, prometheusRule: on, webhook: { certificates: "cert-manager" } },
];

suite(`kubeconform${lacking.length === 0 ? "" : ` (no ${lacking.join("; no ")})`}`, () => {
  const taken = files.filter((name) => !/^refused-|-with-image/.test(name)).map(given);

  test("there are schemas of each version from the oldest on, and many values files", () => {
    expect(versions.map(minorOf)).toEqual(versions.map((_, index) => OLDEST + index));
    expect(versions.length).toBeGreaterThanOrEqual(13);
    expect(taken.length).toBeGreaterThanOrEqual(20);
  });

  const rendered = new Map<string, readonly (readonly Rendered[])[]>();

  /** helm's output, rendered once for versions with the same values. */
  function renders(chart: OwnChart, sets: readonly object[], version: string): readonly (readonly Rendered[])[] {
    const key = chart.name + JSON.stringify(sets);
    const known = rendered.get(key) ?? renderAll(chart, sets, "linkerd-cni", "--kube-version", version);
    rendered.set(key, known);
    return known;
  }

  test.each(versions)("the charts' manifests are valid in %s", (version) => {
    const cni = [...taken, everything(minorOf(version))];
    const manifests = [...renders(linkerd2Cni, cni, version), ...renders(linkerdMultus, multus, version)];
    const { valid, skipped } = validate(manifests, version);
    expect(valid + skipped).toBe(manifests.flat().length);
    expect(valid).toBeGreaterThan(200);
  });

  test("a field that a version does not have is reported", () => {
    const [manifests = []] = renderAll(linkerd2Cni, [{}], "linkerd-cni");
    const wrong = manifests.map((each) => (each.kind === "ConfigMap" ? { ...each, datum: {} } : each));
    expect(() => validate([wrong], versions.at(-1) ?? "")).toThrow("additional properties 'datum' not allowed");
  });
});
