import type { GroupVersionKind } from "cdk8s";
import type { k8s } from "cdk8s-plus-27";
import { concat, type Input, items, or, present, type Refs, type Templated, when } from "../helm";
import { AUTHORITY, ROOT, SERVICE, WEBHOOK_PATH } from "./names";
import type { MultusValues } from "./values";

/** Of cert-manager. */
export const CERTIFICATE: GroupVersionKind = { apiVersion: "cert-manager.io/v1", kind: "Certificate" };
export const ISSUER: GroupVersionKind = { apiVersion: "cert-manager.io/v1", kind: "Issuer" };

type Webhook = Refs<MultusValues>["webhook"];

/** The operator's own pods have to start before it can answer. */
function namespaceSelector({ namespaceSelector: chosen }: Webhook, own: Input<string>) {
  const conditions = present(chosen.matchExpressions);
  return {
    matchLabels: present(chosen.matchLabels),
    matchExpressions: [
      ...(conditions === undefined ? [] : items(conditions)),
      { key: "kubernetes.io/metadata.name", operator: "NotIn", values: [own] },
    ],
  };
}

function objectSelector({ objectSelector: { matchLabels, matchExpressions } }: Webhook) {
  return when(or(matchLabels, matchExpressions), {
    matchLabels: present(matchLabels),
    matchExpressions: present(matchExpressions),
  });
}

/** The webhook; its caBundle is the operator's or cert-manager's to set. */
export function podWebhook({ webhook }: Refs<MultusValues>, namespace: Input<string>): Templated<k8s.MutatingWebhook> {
  return {
    name: "annotate-multus.linkerd.io",
    admissionReviewVersions: ["v1"],
    clientConfig: { service: { name: SERVICE, namespace, path: WEBHOOK_PATH, port: 443 } },
    failurePolicy: webhook.failurePolicy,
    matchPolicy: "Equivalent",
    namespaceSelector: namespaceSelector(webhook, namespace),
    objectSelector: objectSelector(webhook),
    rules: [
      {
        apiGroups: [""],
        apiVersions: ["v1"],
        operations: ["CREATE", "UPDATE"],
        resources: ["pods"],
        scope: "Namespaced",
      },
    ],
    // Another webhook may add what decides after this one.
    reinvocationPolicy: "IfNeeded",
    sideEffects: "None",
    timeoutSeconds: webhook.timeoutSeconds,
  };
}

/**
 * The authority outlives many certificates: what the API server trusts stays the same when one is renewed, while pods
 * show the old one until their kubelet brings the new. Its key stays when it is renewed itself.
 */
export const AUTHORITY_SPEC = {
  secretName: AUTHORITY,
  isCA: true,
  commonName: AUTHORITY,
  duration: "87600h",
  privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Never" },
  issuerRef: { name: ROOT, kind: "Issuer" },
};

/** What cert-manager is asked for. */
export function certificateSpec(
  { webhook: { issuerRef, certificateValidityHours } }: Refs<MultusValues>,
  namespace: Input<string>,
  secretName: string,
) {
  const own = { name: SERVICE, kind: "Issuer" };
  return {
    secretName,
    duration: concat(certificateValidityHours, "h"),
    dnsNames: [concat(SERVICE, ".", namespace, ".svc"), concat(SERVICE, ".", namespace, ".svc.cluster.local")],
    privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
    usages: ["digital signature", "server auth"],
    issuerRef: issuerRef === undefined ? own : when(issuerRef, issuerRef, own),
  };
}
