/** The AdmissionReview that an API server sends when a pod is created. @param pod without kind and version */
export function reviewOf(namespace: string, pod: object): string {
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "1",
      operation: "CREATE",
      resource: { group: "", version: "v1", resource: "pods" },
      namespace,
      object: { kind: "Pod", apiVersion: "v1", ...pod },
    },
  });
}
