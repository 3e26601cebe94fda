module linkerd-cni.test/programs

go 1.24
