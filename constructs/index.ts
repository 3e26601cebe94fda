export { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";
export { LinkerdNamespace, type LinkerdNamespaceProps } from "./namespace";
export { overlaid } from "./overlaid";
export { ValuesError } from "./problems";
export type { ValuesProps } from "./props";
export type { StanzaTemplate } from "./stanza";
export { type Values, values } from "./values";
export { version } from "./version";
