module linkerd-cni/test/tools/certificates

go 1.26.0
