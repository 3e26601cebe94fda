import { copyFile, readFile, writeFile } from "node:fs/promises";
import { outputs } from "../../build/paths";
import { defaultStanza } from "../support/default-stanza";
import { kubeconfig } from "./certificates";
import { onDisk } from "./paths";

const KUBECONFIG = "/etc/cni/net.d/ZZZ-peer-kubeconfig";
const TYPE = "linkerd-peer";

/**
 * Puts linkerd's own plugin on the node, beside ours.
 * @param primary the configuration that it is to be chained to
 * @returns the configuration with it, and with the values of our chart
 */
export async function withPeer(executable: string, primary: string): Promise<string> {
  await copyFile(executable, onDisk(`/opt/cni/bin/${TYPE}`));
  // It takes no context but the one of this name.
  const name = "linkerd-cni-context";
  const access = JSON.parse(await readFile(kubeconfig("admin"), "utf8"));
  const contexts = [{ ...access.contexts[0], name }];
  await writeFile(onDisk(KUBECONFIG), JSON.stringify({ ...access, contexts, "current-context": name }));
  const stanza = JSON.parse(await defaultStanza(outputs.manifests, false));
  const chained = {
    ...stanza,
    type: TYPE,
    kubernetes: { kubeconfig: KUBECONFIG },
  };
  const { plugins, ...rest } = JSON.parse(primary);
  return JSON.stringify({ ...rest, plugins: [...plugins, chained] });
}
