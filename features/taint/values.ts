import { z } from "zod";
import { STARTUP_TAINT } from "../../cni/contract";
import { group } from "../../constructs/value-groups";
import { flag } from "../../helm/loose-types";

export const nodeTaint = group("Startup taint of nodes", {
  enabled: flag().default(false).meta({
    description:
      "Remove the startup taint from a node once its CNI configuration is complete; nodes must be registered with this taint",
  }),
  key: z
    .string()
    .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/, "is not a taint's key")
    .default(STARTUP_TAINT)
    .meta({
      description:
        "Key of the startup taint. The Cluster Autoscaler adds no nodes for pods that do not tolerate it, unless the key " +
        "begins with `startup-taint.cluster-autoscaler.kubernetes.io/`",
      examples: ["startup-taint.cluster-autoscaler.kubernetes.io/linkerd-cni-not-ready"],
    }),
  admissionPolicy: z
    .enum(["", "v1beta1", "v1"])
    .default("")
    .meta({
      description:
        "Create a MutatingAdmissionPolicy of this API version that taints every new Linux node. Nodes that tolerations or " +
        "nodeAffinity exclude keep the taint. Empty creates none: start the kubelets with `--register-with-taints` instead",
    }),
  ownNodeOnly: flag()
    .default(true)
    .meta({
      description:
        "Create a ValidatingAdmissionPolicy that limits each installer to this taint of its own node; needs Kubernetes " +
        "1.30, so set it to false on older versions",
    }),
});
