module linkerd-cni/test/tools/karpenter

go 1.26.0

// Only for its custom resource definitions: nothing is built from it.
require sigs.k8s.io/karpenter v1.8.0
