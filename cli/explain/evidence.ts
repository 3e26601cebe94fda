import type { Surroundings } from "../../cni/decide";
import type { PodName } from "../../cni/environment";
import type { JsonObject } from "../../cni/json";
import type { Pod } from "../../cni/pod";
import type { RedirectOptions } from "../../cni/redirect/options";
import type { Stanza } from "../../cni/stanza";
import type { NamespaceObject, ServiceObject } from "../../kubernetes/types";
import type { PodManifest } from "./material";

/** The evidence about one pod. */
export interface Evidence {
  readonly pod: PodManifest;
  readonly namespace?: NamespaceObject;
  readonly apiServer?: ServiceObject;
  /** Whether the plugin is in the nodes' chain; if not, Multus calls it for pods that request it. */
  readonly chained: boolean;
  /** Whether the NRI plugin is on the nodes, which sets the redirect if the chain did not. */
  readonly nri: boolean;
  /** The plugin's configuration. */
  readonly stanza: JsonObject;
  /** The stanza that the chart writes by default. */
  readonly defaults: JsonObject;
  /** The ConfigMap of the configuration; absent: the chart's defaults. */
  readonly configMap?: string;
  /** When that ConfigMap was last written, if known. */
  readonly configuredAt?: string;
}

/** The outcome for a pod. */
export type PodDecision =
  | { readonly kind: "left alone"; readonly because: string }
  | { readonly kind: "redirected"; readonly because: string; readonly options: RedirectOptions; readonly known: Known }
  /** The plugin fails, so the pod does not start. */
  | { readonly kind: "does not start"; readonly because: string; readonly code: number };

/** The input of the plugin's decision. */
export interface Known {
  readonly pod: Pod;
  readonly around: Surroundings;
  readonly stanza: Stanza;
}

/** @returns a pod's name and namespace, by default `default` */
export function nameOf({ metadata }: Pick<PodManifest, "metadata">): PodName {
  return { namespace: metadata?.namespace ?? "default", name: metadata?.name ?? "" };
}
