import { CONFIG_MAP, ConfigMapKey } from "../../../cni/contract";
import { reasonOf } from "../../../cni/errors";
import { isObject, type Json, type JsonObject } from "../../../cni/json";
import { parseStanza } from "../../../cni/parse-stanza";
import { PLUGIN_TYPE } from "../../../cni/stanza";
import { requireSupported } from "../../../cni/versions";
import { hex } from "../../../host/bytes";
import { Informer, type InformerDeps } from "../../../kubernetes/informer";
import { resources } from "../../../kubernetes/resources";
import type { ConfigMapObject, ObjectReference } from "../../../kubernetes/types";
import { sha256 } from "../../../system/crypto";

/** Every current Multus supports it. */
const CNI_VERSION = "1.0.0";

/** `spec.config` of the definitions, or the problem. */
type Config =
  | { readonly kind: "valid"; readonly text: string }
  | { readonly kind: "invalid"; readonly problem: string };

/** @throws an Error that says what is wrong with the text */
function parse(text: string): JsonObject {
  let json: Json;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON: ${reasonOf(error)}`);
  }
  if (!isObject(json)) throw new Error("not a JSON object");
  return json;
}

/** The stanza as a standalone configuration, with all its fields. @throws if the plugin would refuse it */
function standAlone(stanza: JsonObject, kubeconfig: string): JsonObject {
  const { kubernetes = {}, cniVersion = CNI_VERSION } = stanza;
  parseStanza(stanza, PLUGIN_TYPE);
  requireSupported(typeof cniVersion === "string" ? cniVersion : "", "cniVersion");
  return {
    ...stanza,
    cniVersion,
    name: PLUGIN_TYPE,
    type: PLUGIN_TYPE,
    kubernetes: { ...(kubernetes as JsonObject), kubeconfig },
  };
}

/** Reads the ConfigMap; `where` names it in messages, `kubeconfig` is the path on the nodes. */
export function readConfig(configMap: ConfigMapObject | undefined, where: string, kubeconfig: string): Config {
  const text = configMap?.data?.[ConfigMapKey.stanza];
  if (configMap === undefined) return { kind: "invalid", problem: `ConfigMap ${where} does not exist` };
  if (text === undefined) return { kind: "invalid", problem: `ConfigMap ${where} has no key ${ConfigMapKey.stanza}` };
  try {
    return { kind: "valid", text: JSON.stringify(standAlone(parse(text), kubeconfig), undefined, 2) };
  } catch (error) {
    return { kind: "invalid", problem: `ConfigMap ${where}, key ${ConfigMapKey.stanza}: ${reasonOf(error)}` };
  }
}

/** The stored parts of the ConfigMap. */
interface View {
  readonly config: Config;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

interface Options {
  readonly namespace: string;
  /** Path of the plugin's kubeconfig on the nodes. */
  readonly kubeconfig: string;
  /** Called when the configuration or its problem has changed. */
  readonly changed: () => void;
}

/** Follows the configuration in the ConfigMap. */
export class ConfigMapInformer {
  private readonly informer: Informer<ConfigMapObject, View>;
  private readonly missing: View;
  private last = "";

  constructor(
    private readonly options: Options,
    deps: InformerDeps,
  ) {
    const { namespace, kubeconfig } = options;
    const view = (object: ConfigMapObject | undefined): View => ({
      config: readConfig(object, `${namespace}/${CONFIG_MAP}`, kubeconfig),
      uid: object?.metadata?.uid,
      resourceVersion: object?.metadata?.resourceVersion,
    });
    this.missing = view(undefined);
    const compare = () => this.compare();
    const fieldSelector = `metadata.name=${CONFIG_MAP}`;
    const selection = { resource: resources.configMaps, namespace, fieldSelector };
    this.informer = new Informer({ ...selection, view, changed: compare, synced: compare }, deps);
  }

  /** Runs until the signal is given. */
  run(): Promise<void> {
    return this.informer.run();
  }

  get synced(): boolean {
    return this.informer.store.synced;
  }

  get config(): Config {
    return this.view.config;
  }

  /** Its reference in an Event. */
  get reference(): ObjectReference {
    const { uid } = this.view;
    return { apiVersion: "v1", kind: "ConfigMap", namespace: this.options.namespace, name: CONFIG_MAP, uid };
  }

  /** Identifies a state of the ConfigMap. */
  get digest(): string {
    const { config, uid, resourceVersion } = this.view;
    const state = new TextEncoder().encode(JSON.stringify([config, uid, resourceVersion]));
    return hex(sha256(state)).slice(0, 16);
  }

  private get view(): View {
    return this.informer.store.get(`${this.options.namespace}/${CONFIG_MAP}`) ?? this.missing;
  }

  private compare(): void {
    const config = JSON.stringify(this.config);
    if (!this.synced || config === this.last) return;
    this.last = config;
    this.options.changed();
  }
}
