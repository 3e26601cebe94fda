import { readFileSync } from "node:fs";
import { join } from "node:path";
import { STARTUP_TAINT } from "../../cni/contract";
import { multusValues } from "../../constructs/multus/values";
import { NAMESPACE_LABELS } from "../../constructs/namespace";
import { values } from "../../constructs/values";
import { registry, repository, version } from "../../constructs/version";
import { readValues } from "../../helm/read";
import { constructed, linkerd2Cni } from "./charts";
import { byName, documents, helmSuite, kustomized, kustomizeSuite, type Rendered, root, run, withValues } from "./helm";
import { lacking, validate, versions } from "./kubeconform";

const examples = join(root, "examples");

const read = (name: string) => documents(readFileSync(join(examples, name), "utf8"));

interface Pod {
  readonly priorityClassName?: string;
  readonly containers: readonly {
    readonly resources?: object;
    readonly volumeMounts: readonly { readonly mountPath: string }[];
    readonly securityContext: object;
  }[];
}

interface Binding {
  readonly subjects: readonly { readonly kind: string; readonly name: string }[];
}

function podOf(manifests: readonly Rendered[]): Pod {
  const daemonSet = manifests.find(({ kind }) => kind === "DaemonSet");
  return (daemonSet as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec;
}

test("Argo CD and Flux read the chart where the project lives, at this version; so does npm", () => {
  const [application] = read("argo-application.yaml") as unknown as readonly [
    { spec: { source: { repoURL: string; targetRevision: string } } },
  ];
  const source = read("flux-helmrelease.yaml").find(({ kind }) => kind === "GitRepository");
  const { repoURL, targetRevision } = application.spec.source;
  expect([repoURL, targetRevision]).toEqual([repository, `v${version}`]);
  expect(source?.["spec"]).toMatchObject({ url: repository, ref: { tag: `v${version}` } });
  const about = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  expect(about.repository.url).toBe(`git+${repository}.git`);
});

test("Argo CD and Flux pull this version of the released chart, and Flux only if the release's workflow signed it", () => {
  const [application] = read("argo-application-oci.yaml");
  const [source, , release] = read("flux-ocirepository.yaml");
  expect(application?.["spec"]).toMatchObject({
    source: { repoURL: `${registry}/charts`, chart: "linkerd2-cni", targetRevision: version },
  });
  const signer = `${repository}/.github/workflows/release.yml@refs/tags/v${version}`;
  const spec = source?.["spec"] as unknown as { verify: { matchOIDCIdentity: readonly [{ subject: string }] } };
  expect(spec).toMatchObject({ url: `oci://${registry}/charts/linkerd2-cni`, ref: { tag: version } });
  const [{ subject }] = spec.verify.matchOIDCIdentity;
  expect(signer).toMatch(new RegExp(subject));
  expect(signer.replace(/\d$/, "9")).not.toMatch(new RegExp(subject));
  expect(release?.["spec"]).toMatchObject({ chartRef: { kind: source?.kind, name: source?.metadata.name } });
});

test.each(["argo-application.yaml", "argo-application-oci.yaml"])("%s makes the namespace with its labels", (name) => {
  const [application] = read(name) as unknown as readonly [
    { spec: { destination: { namespace: string }; syncPolicy: { managedNamespaceMetadata: { labels: object } } } },
  ];
  expect(application.spec.syncPolicy.managedNamespaceMetadata.labels).toEqual(NAMESPACE_LABELS);
});

test.each(["flux-helmrelease.yaml", "flux-ocirepository.yaml"])("%s makes the namespace with its labels", (name) => {
  const [namespace, release] = ["Namespace", "HelmRelease"].map((kind) =>
    read(name).find((item) => item.kind === kind),
  );
  expect(namespace?.metadata).toMatchObject({ labels: NAMESPACE_LABELS });
  expect(release?.["spec"]).toMatchObject({ targetNamespace: namespace?.metadata.name });
});

test("Karpenter's nodes start with the taint that the installer removes", () => {
  const [pool] = read("karpenter-nodepool.yaml") as unknown as readonly [
    { spec: { template: { spec: { startupTaints: readonly object[] } } } },
  ];
  expect(pool.spec.template.spec.startupTaints).toEqual([{ key: STARTUP_TAINT, effect: "NoSchedule" }]);
});

helmSuite("examples for Helm", () => {
  /** Renders the chart at the path that an example names, with the values that it gives. */
  const rendered = (path: string, release: string, given: unknown) =>
    withValues(given, (file) =>
      documents(run("template", release, join(root, path), "--namespace", "x", "--values", file)),
    );

  test("the Argo CD application", () => {
    const [application] = read("argo-application.yaml");
    const { source } = application!["spec"] as unknown as {
      source: { path: string; helm: { releaseName: string; valuesObject: object } };
    };
    const pod = podOf(rendered(source.path, source.helm.releaseName, source.helm.valuesObject));
    expect(pod.priorityClassName).toBe("system-node-critical");
  });

  test("the Flux release", () => {
    const [source, release] = ["GitRepository", "HelmRelease"].map((kind) =>
      read("flux-helmrelease.yaml").find((item) => item.kind === kind),
    );
    const spec = release!["spec"] as unknown as {
      releaseName: string;
      values: object;
      chart: { spec: { chart: string; sourceRef: { name: string } } };
    };
    expect(spec.chart.spec.sourceRef.name).toBe(source?.metadata.name);
    const pod = podOf(rendered(spec.chart.spec.chart, spec.releaseName, spec.values));
    expect(pod.containers[0]?.resources).toEqual({ requests: { cpu: "10m", memory: "10Mi" } });
    expect(spec.values).not.toHaveProperty("updateStrategy");
  });

  const platforms = [
    ["openshift-values.yaml", "openshift", "/host/var/lib/cni/bin"],
    ["k3s-values.yaml", "k3s", "/host/var/lib/rancher/k3s/data/cni"],
  ] as const;

  test.each(platforms)("%s", (name, platform, mounted) => {
    const [given] = read(name);
    expect(readValues(values, given as object).problems).toEqual([]);
    const [container] = podOf(rendered("dist/charts/linkerd2-cni", "linkerd-cni", given)).containers;
    expect(container?.volumeMounts.map(({ mountPath }) => mountPath)).toContain(mounted);
    expect(given).toMatchObject({ platform });
  });

  const validation = lacking.length === 0 ? test : test.skip;

  validation("the examples' manifests are valid by Kubernetes' schemas", () => {
    const chart = "dist/charts/linkerd2-cni";
    const files = ["k3s-values.yaml", "openshift-values.yaml", "openshift-multus/linkerd-cni-values.yaml"];
    const sets = files.map((name) => rendered(chart, "linkerd-cni", read(name)[0]));
    const multus = read("openshift-multus/linkerd-multus-values.yaml")[0];
    const [application, release] = [read("argo-application.yaml")[0], read("flux-helmrelease.yaml").at(-1)];
    const { valuesObject } = (application!["spec"] as unknown as { source: { helm: { valuesObject: object } } }).source
      .helm;
    const all = [
      ...sets,
      rendered(chart, "linkerd-cni", valuesObject),
      rendered(chart, "linkerd-cni", (release!["spec"] as unknown as { values: object }).values),
      rendered("dist/charts/linkerd-multus", "linkerd-multus", multus),
      read("openshift-multus/scc.yaml"),
      read("kustomize/quota.yaml"),
    ];
    const { valid } = validate(all, versions.at(-1) ?? "");
    expect(valid).toBe(all.flat().length);
  });

  /** Commands that the documents and the examples give, and the charts that they name. */
  const pages = ["README.md", "docs/upgrade.md", "docs/multus.md", "docs/nri.md", "docs/gitops.md"].concat(
    ["k3s-values.yaml", "openshift-values.yaml"].map((name) => join("examples", name)),
    ["linkerd-cni-values.yaml", "linkerd-multus-values.yaml"].map((name) => join("examples", "openshift-multus", name)),
  );

  test.each(pages)("%s: helm takes the charts of the commands", (page) => {
    const text = readFileSync(join(root, page), "utf8").replace(/\\\n\s*/g, "");
    const commands = text.match(/helm (install|upgrade) (?![^\n]*…)[^\n`#]* -n [^\n`#]*/g) ?? [];
    for (const command of commands) {
      const named = command.split(/\s+/).filter((word) => /^dist\/|^oci:\/\/|^linkerd(2-cni|-multus)$/.test(word));
      const charts = named.filter((word) => word.includes("/"));
      expect([command, charts.length]).toEqual([command, 1]);
      if (charts[0]?.startsWith("dist/"))
        expect(run("show", "chart", join(root, charts[0]))).toContain("apiVersion: v2");
    }
  });
});

test("OpenShift with Multus: both charts take their values and agree on where the kubeconfig is", () => {
  const folder = "openshift-multus";
  const [cni] = read(join(folder, "linkerd-cni-values.yaml"));
  const [multus] = read(join(folder, "linkerd-multus-values.yaml"));
  const { destCNINetDir, chained } = readValues(values, cni as object).values;
  expect(chained).toBe(false);
  expect(readValues(multusValues, multus as object).values.controller.cniKubeconfigNodePath).toBe(
    join(destCNINetDir, "ZZZ-linkerd-cni-kubeconfig"),
  );
  const made = byName(constructed(linkerd2Cni, {}, "linkerd-cni"));
  const [privileged] = read(join(folder, "scc.yaml")) as unknown as readonly [Binding];
  const names = privileged.subjects.map(({ kind, name }) => `${kind}/${name}`);
  expect(Object.keys(made)).toEqual(expect.arrayContaining(names));
});

kustomizeSuite("the example for kustomize", () => {
  test("patches the default manifests", () => {
    const manifests = kustomized(join(examples, "kustomize"));
    const base = documents(readFileSync(join(root, "dist", "manifests", "linkerd-cni.yaml"), "utf8"));
    const kinds = manifests.map(({ kind }) => kind).filter((kind) => kind !== "ResourceQuota");
    expect(kinds.sort()).toEqual(base.map(({ kind }) => kind).sort());
    for (const { metadata } of manifests) expect(metadata).toMatchObject({ labels: { team: "platform" } });
    const pod = podOf(manifests);
    expect(pod.priorityClassName).toBe("system-node-critical");
    expect(pod.containers[0]?.volumeMounts).toEqual(podOf(base).containers[0]?.volumeMounts);
  });

  test("has the quota that its priority class needs in some clusters", () => {
    const quota = kustomized(join(examples, "kustomize")).find(({ kind }) => kind === "ResourceQuota");
    const made = constructed(linkerd2Cni, { priorityClassName: "system-node-critical" }, "linkerd-cni");
    expect(quota?.["spec"]).toEqual(made.find(({ kind }) => kind === "ResourceQuota")?.["spec"]);
  });

  test("of a prefix renames all that the installer finds by name", () => {
    const manifests = kustomized(join(examples, "kustomize-prefix"));
    const text = JSON.stringify(manifests.filter(({ kind }) => kind !== "Namespace" && kind !== "ConfigMap"));
    expect(text.match(/"resourceNames":\[[^\]]*\]/g)?.sort()).toEqual([
      '"resourceNames":["prod-linkerd-cni"]',
      '"resourceNames":["prod-linkerd-cni"]',
    ]);
  });
});
