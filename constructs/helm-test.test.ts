import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { podFromObject } from "../cni/api-objects";
import { decide } from "../cni/decide";
import { skipWithoutLookup } from "../cni/evidence";
import type { JsonObject } from "../cni/json";
import { parseStanza } from "../cni/parse-stanza";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: object; readonly annotations: Record<string, string> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly containers: readonly { readonly securityContext: { runAsUser: number; runAsGroup: number } }[];
  };
}

function made(props: LinkerdCniProps = {}): readonly Manifest[] {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", props).addHelmTest();
  return chart.toJson() as Manifest[];
}

const found = (kind: string, props?: LinkerdCniProps) => made(props).find((manifest) => manifest.kind === kind)!;

const POD_LOOKUPS = ["auto", "annotations", "api"] as const;

test.each(POD_LOOKUPS)(
  "with podLookup %s the plugin redirects the pod, whatever ports and users are set",
  (podLookup) => {
    const props: LinkerdCniProps = { podLookup, outboundProxyPort: 5140, proxyUID: 65532, proxyGID: 65532 };
    const object = found("Pod", props);
    const name = { namespace: "linkerd-cni", name: object.metadata.name };
    const stanza = parseStanza(JSON.parse(found("ConfigMap", props).data?.["cni_network_config"] ?? ""), "linkerd-cni");
    expect(skipWithoutLookup({ pod: name, annotations: object.metadata.annotations }, stanza)).toBeUndefined();
    const pod = podFromObject(name, object as unknown as JsonObject);
    expect(decide(pod, {}, stanza)).toMatchObject({
      kind: "redirect",
      options: { outboundPort: 5140, proxyUid: 65532 },
    });
    const [container] = object.spec.containers;
    expect(container?.securityContext).toMatchObject({ runAsUser: 65533, runAsGroup: 65533 });
  },
);

test("the pod has no token and no label of the DaemonSet's pods, and runs on a node with the plugin", () => {
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } };
  const { metadata, spec } = found("Pod", { nodeAffinity, commonLabels: { "k8s-app": "linkerd-cni", team: "mesh" } });
  expect(metadata.labels).toEqual({ "k8s-app": "linkerd-cni-test", "linkerd.io/cni-resource": "true", team: "mesh" });
  expect(spec).toMatchObject({
    automountServiceAccountToken: false,
    affinity: { nodeAffinity },
    tolerations: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }],
  });
});

test("it is a hook of helm test, and is absent from static manifests and if the plugin is not called for it", () => {
  expect(found("Pod").metadata.annotations["helm.sh/hook"]).toBe("test");
  expect(made({ chained: false }).map(({ kind }) => kind)).not.toContain("Pod");
  const manifests = readFileSync(join(__dirname, "..", "dist", "manifests", "linkerd-cni.yaml"), "utf8");
  expect(manifests).not.toContain("helm.sh/hook");
});
