import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

/** The stanza of the default manifests, with IPv6 enabled or disabled, for the installer. */
export async function defaultStanza(manifests: string, ipv6: boolean): Promise<string> {
  const documents = parseAllDocuments(await readFile(join(manifests, "linkerd-cni.yaml"), "utf8"));
  const config = documents.map((document) => document.toJS()).find(({ kind }) => kind === "ConfigMap");
  const stanza = JSON.parse(config.data.cni_network_config);
  return JSON.stringify({ ...stanza, linkerd: { ...stanza.linkerd, ipv6 } });
}
