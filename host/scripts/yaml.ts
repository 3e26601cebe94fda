/** A separate script: only a kubeconfig that is not JSON needs it. */
export { parse as parseYaml } from "yaml";
