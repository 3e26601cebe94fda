import type { LastingHost } from "../../host/port";

/** The functions of the executable's C part. */
export const host: LastingHost = (globalThis as unknown as { readonly host: LastingHost }).host;
