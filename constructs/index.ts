export { overlaid } from "../helm/read";
export { Installation, type InstallationProps, type Labels } from "./installation";
export { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";
export type { Monitoring, PodMonitor } from "./monitoring/monitoring";
export { LinkerdMultus, type LinkerdMultusProps } from "./multus/linkerd-multus";
export { LinkerdMultusNamespace, type LinkerdMultusNamespaceProps } from "./multus/namespace";
export { type MultusValues, multusValues } from "./multus/values";
export { LinkerdNamespace, type LinkerdNamespaceProps } from "./namespace";
export type { LinkerdNri } from "./nri";
export {
  DEFAULT_DIRECTORIES,
  directoriesOf,
  PLATFORM_NAMES,
  PLATFORMS,
  type Platform,
  type PlatformName,
} from "./platforms";
export type { PodParts } from "./pod";
export type { StanzaTemplate } from "./stanza";
export { type Values, values } from "./values";
export { version } from "./version";
