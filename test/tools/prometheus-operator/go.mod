module linkerd-cni/test/tools/prometheus-operator

go 1.26.0

// Only for its custom resource definitions: nothing is built from it.
require github.com/prometheus-operator/prometheus-operator v0.85.0
