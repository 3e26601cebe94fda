import { certificate } from "../../system/certificates.testing";
import { PROGRAMS_IMAGE } from "./images";
import { type Kubectl, namespace, PROXY, podAnnotations, podSpec, VALIDATOR } from "./pods";

const NAMESPACE = "linkerd";
const NAME = "linkerd-proxy-injector";
const PORT = 8443;
const COMPONENT = { "linkerd.io/control-plane-component": "proxy-injector" };
const MESHED = { "linkerd.io/control-plane-ns": NAMESPACE };

/** Pods with this label get a proxy. */
export const INJECT = { inject: "enabled" };

const { cert, key } = certificate({ subject: NAME, names: [`${NAME}.${NAMESPACE}.svc`] });

/** What it adds to pods. */
const PATCH = [
  { op: "add", path: "/metadata/labels/linkerd.io~1control-plane-ns", value: NAMESPACE },
  { op: "add", path: "/metadata/annotations", value: podAnnotations({ proxy: "sidecar" }) },
  { op: "add", path: "/spec/initContainers", value: [VALIDATOR] },
  { op: "add", path: "/spec/containers/-", value: PROXY },
];

/** The webhook of linkerd's injector. */
export const injectorWebhook = (failurePolicy: "Ignore" | "Fail") => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "MutatingWebhookConfiguration",
  metadata: { name: `${NAME}-webhook-config`, labels: COMPONENT },
  webhooks: [
    {
      name: "linkerd-proxy-injector.linkerd.io",
      clientConfig: {
        service: { name: NAME, namespace: NAMESPACE, path: "/" },
        caBundle: Buffer.from(cert).toString("base64"),
      },
      failurePolicy,
      timeoutSeconds: 2,
      objectSelector: { matchLabels: INJECT },
      rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
    },
  ],
});

/** A small injector in place of linkerd's: meshed itself, with its proxy in its own template, as linkerd's is. */
function injector(): readonly object[] {
  const env = Object.entries({ TLS_CRT: cert, TLS_KEY: key, PATCH: JSON.stringify(PATCH) });
  const app = {
    name: "proxy-injector",
    image: PROGRAMS_IMAGE,
    args: ["inject"],
    env: env.map(([name, value]) => ({ name, value })),
    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
  };
  const annotations = { ...podAnnotations({ proxy: "sidecar" }), "config.linkerd.io/skip-inbound-ports": String(PORT) };
  const template = {
    metadata: { labels: { ...COMPONENT, ...MESHED }, annotations },
    spec: { ...podSpec({ validator: true }), containers: [app, PROXY] },
  };
  const metadata = { name: NAME, namespace: NAMESPACE };
  return [
    { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { selector: { matchLabels: COMPONENT }, template } },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: COMPONENT, ports: [{ port: 443, targetPort: PORT }] },
    },
  ];
}

/** Installs the injector, with linkerd's default policy, and waits until it answers. */
export async function installInjector(kubectl: Kubectl): Promise<void> {
  await kubectl.apply(namespace(NAMESPACE));
  await kubectl.apply(...injector(), injectorWebhook("Ignore"));
  await injectorAvailable(kubectl);
}

export async function injectorAvailable(kubectl: Kubectl): Promise<void> {
  const what = [`deployment/${NAME}`, `--namespace=${NAMESPACE}`];
  await kubectl.run("wait", ...what, "--for=condition=Available", "--timeout=180s");
}
