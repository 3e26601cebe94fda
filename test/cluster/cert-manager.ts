import { certificate } from "../../system/certificates.testing";
import type { Kubectl } from "./pods";

const definition = (kind: string) => {
  const singular = kind.toLowerCase();
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${singular}s.cert-manager.io` },
    spec: {
      group: "cert-manager.io",
      scope: "Namespaced",
      names: { kind, plural: `${singular}s`, singular },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
};

interface Certificate {
  readonly spec: {
    readonly secretName: string;
    readonly dnsNames: readonly string[];
    readonly issuerRef: { readonly name: string; readonly kind: string };
  };
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Does cert-manager's work: the cluster has its kinds of objects, but no controller. */
export class CertManager {
  constructor(private readonly kubectl: Kubectl) {}

  async install(): Promise<void> {
    const kinds = ["Certificate", "Issuer"].map(definition);
    await this.kubectl.apply(...kinds);
    const names = kinds.map(({ metadata }) => `crd/${metadata.name}`);
    await this.kubectl.run("wait", "--for=condition=Established", ...names, "--timeout=180s");
  }

  /** Makes the requested certificate, and sets the webhook configuration's caBundle. */
  async issue(configuration: string): Promise<void> {
    const { metadata, webhooks } = await this.kubectl.json<{
      metadata: { annotations: Record<string, string> };
      webhooks: readonly object[];
    }>("get", "mutatingwebhookconfiguration", configuration);
    const [namespace = "", name = ""] = (metadata.annotations["cert-manager.io/inject-ca-from"] ?? "").split("/");
    const { spec } = await this.kubectl.json<Certificate>("get", "certificate", name, `--namespace=${namespace}`);
    await this.kubectl.run("get", spec.issuerRef.kind, spec.issuerRef.name, `--namespace=${namespace}`);
    const made = certificate({ subject: name, names: spec.dnsNames });
    await this.kubectl.apply({
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name: spec.secretName, namespace },
      data: { "tls.crt": base64(made.cert), "tls.key": base64(made.key), "ca.crt": base64(made.cert) },
    });
    const path = (_: object, index: number) => `/webhooks/${index}/clientConfig/caBundle`;
    const patch = webhooks.map(path).map((each) => ({ op: "add", path: each, value: base64(made.cert) }));
    const what = ["mutatingwebhookconfiguration", configuration];
    await this.kubectl.run("patch", ...what, "--type=json", `--patch=${JSON.stringify(patch)}`);
  }
}
