import { copyFile, readFile, rename, writeFile } from "node:fs/promises";
import { outputs } from "../../build/paths";
import { defaultStanza } from "../../demo/stanza";
import { kubeconfig } from "./certificates";
import { onDisk } from "./paths";

const KUBECONFIG = "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig";
const CONFIGURATION = "/etc/cni/net.d/10-cluster.conflist";

/** Chains linkerd's own plugin, with the values of our chart. It takes no context but the one of this name. */
export async function chainPeer(executable: string): Promise<void> {
  await copyFile(executable, onDisk("/opt/cni/bin/linkerd-cni"));
  const access = JSON.parse(await readFile(kubeconfig("admin"), "utf8"));
  const [context] = access.contexts;
  const name = "linkerd-cni-context";
  await writeFile(
    onDisk(KUBECONFIG),
    JSON.stringify({ ...access, contexts: [{ ...context, name }], "current-context": name }),
  );
  const stanza = JSON.parse(await defaultStanza(outputs.manifests, false));
  const path = onDisk(CONFIGURATION);
  const primary = JSON.parse(await readFile(path, "utf8"));
  const chained = {
    ...stanza,
    kubernetes: { kubeconfig: KUBECONFIG },
    linkerd: { ...stanza.linkerd, "iptables-mode": "nft" },
  };
  await writeFile(`${path}.new`, JSON.stringify({ ...primary, plugins: [...primary.plugins, chained] }));
  await rename(`${path}.new`, path);
}
