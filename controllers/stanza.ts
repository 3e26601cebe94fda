import { InstallerVariable } from "../cni/contract";
import { isObject, type Json } from "../cni/json";
import { parseStanza } from "../cni/parse-stanza";
import { PLUGIN_TYPE, type Stanza } from "../cni/stanza";

/** The plugin's stanza from the ConfigMap's text. @throws an Error if the text is not a stanza */
export function stanzaFromText(text: string): Stanza {
  const stanza = JSON.parse(text) as Json;
  if (!isObject(stanza)) throw new Error(`${InstallerVariable.stanza} is not a JSON object`);
  return parseStanza(stanza, PLUGIN_TYPE);
}
