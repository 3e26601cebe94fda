/** The package's version and the default tag of the image; a test compares it with package.json. */
export const version = "0.1.0";

/** The project's repository: the source of its runbooks, and of the chart for Argo CD and Flux. */
export const repository = "https://github.com/linkerd-cni-cdk8s/linkerd-cni";

/** The registry that releases are pushed to. */
export const registry = "ghcr.io/linkerd-cni-cdk8s";

/** The chart reference of a release for `helm install`. */
export const chartReference = (name: string): string => `oci://${registry}/charts/${name} --version ${version}`;
