import type { LastingHost } from "../../host/port";

/** What the executable's C part provides. */
export const host: LastingHost = (globalThis as unknown as { readonly host: LastingHost }).host;
