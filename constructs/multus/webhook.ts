import type { GroupVersionKind } from "cdk8s";
import type { k8s } from "cdk8s-plus-27";
import { Label, MULTUS_NAME, OperatorPath, WEBHOOK_SERVICE } from "../../cni/contract";
import { concat, type Input, items, or, present, type Refs, type Templated, when } from "../../helm/index";
import type { MultusValues } from "./values";

/** Of cert-manager. */
export const CERTIFICATE: GroupVersionKind = { apiVersion: "cert-manager.io/v1", kind: "Certificate" };
export const ISSUER: GroupVersionKind = { apiVersion: "cert-manager.io/v1", kind: "Issuer" };

/** The Secret with cert-manager's certificate; its name differs from the operator's, so that neither uses the other's. */
export const ISSUED_SECRET = `${WEBHOOK_SERVICE}-certificate`;
/** The authority that signs it if no issuer is given: a cert-manager Certificate and its Secret. */
export const AUTHORITY = `${WEBHOOK_SERVICE}-ca`;
/** The issuer of the self-signed authority. */
export const ROOT = `${WEBHOOK_SERVICE}-root`;

type Values = Refs<MultusValues>;

/** Namespaces in which the cluster must always be able to start pods, whatever the values. */
const SYSTEM_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease"];

/**
 * Namespaces whose pods must start before the operator's pods: its own, and those of the pods that make nodes ready.
 */
function namespaceSelector({ controller, webhook }: Values, own: Input<string>) {
  const chosen = webhook.namespaceSelector;
  const conditions = present(chosen.matchExpressions);
  return {
    matchLabels: present(chosen.matchLabels),
    matchExpressions: [
      ...(conditions === undefined ? [] : items(conditions)),
      {
        key: "kubernetes.io/metadata.name",
        operator: "NotIn",
        values: [...SYSTEM_NAMESPACES, own, controller.cniNamespace],
      },
      // Kustomize does not change namespaces in these values; the manifests set this label on the operator's namespace.
      { key: Label.name, operator: "NotIn", values: [MULTUS_NAME] },
    ],
  };
}

function objectSelector({ webhook }: Values) {
  const { matchLabels, matchExpressions } = webhook.objectSelector;
  return when(or(matchLabels, matchExpressions), {
    matchLabels: present(matchLabels),
    matchExpressions: present(matchExpressions),
  });
}

type Operation = "CREATE" | "UPDATE";

function podWebhook(
  values: Values,
  namespace: Input<string>,
  { name, operation, failurePolicy }: { name: string; operation: Operation; failurePolicy: Input<string> },
): Templated<k8s.MutatingWebhook> {
  return {
    name,
    admissionReviewVersions: ["v1"],
    clientConfig: { service: { name: WEBHOOK_SERVICE, namespace, path: OperatorPath.webhook, port: 443 } },
    failurePolicy,
    matchPolicy: "Equivalent",
    namespaceSelector: namespaceSelector(values, namespace),
    objectSelector: objectSelector(values),
    rules: [
      {
        apiGroups: [""],
        apiVersions: ["v1"],
        operations: [operation],
        resources: ["pods"],
        scope: "Namespaced",
      },
    ],
    // A later webhook may add what decides the review.
    reinvocationPolicy: "IfNeeded",
    sideEffects: "None",
    timeoutSeconds: values.webhook.timeoutSeconds,
  };
}

/** The webhooks; the operator or cert-manager sets their caBundle. */
export function podWebhooks(values: Values, namespace: Input<string>): Templated<k8s.MutatingWebhook[]> {
  const { failurePolicy } = values.webhook;
  return [
    podWebhook(values, namespace, { name: "annotate-multus.linkerd.io", operation: "CREATE", failurePolicy }),
    // Finalizers and labels of running pods can change without the operator.
    podWebhook(values, namespace, {
      name: "annotate-multus-update.linkerd.io",
      operation: "UPDATE",
      failurePolicy: "Ignore",
    }),
  ];
}

/**
 * The authority outlives many certificates: the API server's trust does not change when one is renewed, while pods
 * serve the old one until their kubelet updates it. The authority keeps its key when it is renewed.
 */
export const AUTHORITY_SPEC = {
  secretName: AUTHORITY,
  isCA: true,
  commonName: AUTHORITY,
  duration: "87600h",
  privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Never" },
  issuerRef: { name: ROOT, kind: "Issuer" },
};

/** The objects for cert-manager. */
export function certificateSpec(
  { webhook: { issuerRef, certificateValidityHours } }: Refs<MultusValues>,
  namespace: Input<string>,
) {
  const own = { name: WEBHOOK_SERVICE, kind: "Issuer" };
  return {
    secretName: ISSUED_SECRET,
    duration: concat(certificateValidityHours, "h"),
    dnsNames: [
      concat(WEBHOOK_SERVICE, ".", namespace, ".svc"),
      concat(WEBHOOK_SERVICE, ".", namespace, ".svc.cluster.local"),
    ],
    privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
    usages: ["digital signature", "server auth"],
    issuerRef: issuerRef === undefined ? own : when(issuerRef, issuerRef, own),
  };
}
