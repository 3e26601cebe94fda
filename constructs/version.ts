/** The package's version, also the default tag of the image; a test compares it with package.json. */
export const version = "0.1.0";

/** Where the project lives: its runbooks, and what Argo CD and Flux read the chart from. */
export const repository = "https://github.com/linkerd-cni-cdk8s/linkerd-cni";

/** The registry that releases are pushed to. */
export const registry = "ghcr.io/linkerd-cni-cdk8s";

/** What `helm install` takes for a chart of a release. */
export const chartReference = (name: string): string => `oci://${registry}/charts/${name} --version ${version}`;
