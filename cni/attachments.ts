import { PLUGIN_TYPE } from "./stanza";

/**
 * Directory beside the plugin, with an empty file for each attachment left by an uninstall: the runtime or Multus still
 * calls the plugin to end them. The call that ends the last one removes the plugin.
 */
export const ATTACHED = `${PLUGIN_TYPE}.attached`;

/** File name of an attachment. */
export const attachmentName = (containerId: string, interfaceName: string): string => `${containerId}@${interfaceName}`;
