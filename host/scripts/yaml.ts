/** A script of its own: only a kubeconfig that is not JSON needs it. */
export { parse as parseYaml } from "yaml";
