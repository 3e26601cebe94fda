/** The name of the chart's resources, and what selects its pods. */
export const NAME = "linkerd-cni";
/** The container that installs. */
export const INSTALLER = "install-cni";
export const SELECTOR = { key: "k8s-app", value: NAME } as const;
