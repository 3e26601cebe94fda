import type { Schema } from "../helm/index";
import type { MultusValues } from "./multus/props";
import { multusValues as multus } from "./multus/values";
import type { Values } from "./props";
import { values as cni } from "./values";

export { Installation, type InstallationProps, type Labels } from "./installation";
export { LinkerdCni, type LinkerdCniProps, type PluginResources } from "./linkerd-cni";
export type { Monitoring, PodMonitor } from "./monitoring/monitoring";
export { LinkerdMultus, type LinkerdMultusProps } from "./multus/linkerd-multus";
export { LinkerdMultusNamespace, type LinkerdMultusNamespaceProps } from "./multus/namespace";
export type * from "./multus/props";
export { LinkerdNamespace, type LinkerdNamespaceProps } from "./namespace";
export type { LinkerdNri } from "./nri";
export { overlaid } from "./overlaid";

export {
  DEFAULT_DIRECTORIES,
  directoriesOf,
  PLATFORM_NAMES,
  PLATFORMS,
  type Platform,
  type PlatformName,
} from "./platforms";
export type { PodParts } from "./pod";
export type * from "./props";
export type { StanzaTemplate } from "./stanza";
export { version } from "./version";

/** The values of the chart linkerd2-cni. */
export const values: Schema<Values> = cni;

/** The values of the chart linkerd-multus. */
export const multusValues: Schema<MultusValues> = multus;
