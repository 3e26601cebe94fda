import { createHash } from "node:crypto";
import type { Notice } from "../../../kubernetes/watch";
import { Store } from "../store";
import { CONFIG_MAP, type Config, type ConfigMapObject, readConfig } from "./config";

interface Kept {
  readonly config: Config;
  readonly uid: string | undefined;
  readonly version: string | undefined;
}

interface Options {
  readonly namespace: string;
  /** Path of the plugin's kubeconfig on the nodes. */
  readonly kubeconfig: string;
  /** Told when the configuration, or what is wrong with it, has changed. */
  readonly changed: () => void;
}

/** The ConfigMap, kept up to date by a watch's notices. */
export class ConfigMapSource {
  private readonly store: Store<ConfigMapObject, Kept>;
  private readonly missing: Kept;
  private last: Config | undefined;

  constructor(private readonly options: Options) {
    const { namespace, kubeconfig } = options;
    const where = `${namespace}/${CONFIG_MAP}`;
    const view = (object: ConfigMapObject | undefined): Kept => ({
      config: readConfig(object, where, kubeconfig),
      uid: object?.metadata?.uid,
      version: object?.metadata?.resourceVersion,
    });
    this.missing = view(undefined);
    this.store = new Store({
      key: ({ metadata }) => metadata?.name ?? "",
      view,
      changed: () => this.compare(),
      synced: () => this.compare(),
    });
  }

  get synced(): boolean {
    return this.store.synced;
  }

  get config(): Config {
    return this.kept.config;
  }

  /** What an Event about it regards. */
  get regarding() {
    const { uid } = this.kept;
    return { apiVersion: "v1", kind: "ConfigMap", namespace: this.options.namespace, name: CONFIG_MAP, uid };
  }

  /** Tells one state of the ConfigMap from any other one. */
  get digest(): string {
    const { config, uid, version } = this.kept;
    return createHash("sha256")
      .update(JSON.stringify([config, uid, version]))
      .digest("hex")
      .slice(0, 16);
  }

  apply(notice: Notice<ConfigMapObject>): void {
    this.store.apply(notice);
  }

  private get kept(): Kept {
    return this.store.get(CONFIG_MAP) ?? this.missing;
  }

  private compare(): void {
    const { config } = this;
    if (!this.synced || JSON.stringify(config) === JSON.stringify(this.last)) return;
    this.last = config;
    this.options.changed();
  }
}
