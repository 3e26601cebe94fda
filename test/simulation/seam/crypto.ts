/** `system/crypto` on the simulated machine: chance comes from the history's seed. */
import type * as crypto from "../../../system/crypto";
import { kernel } from "./kernel";

export * from "../../support/node/crypto";
export const randomBytes: typeof crypto.randomBytes = (count) =>
  Uint8Array.from({ length: count }, () => kernel.random() * 256);
export const randomUUID: typeof crypto.randomUUID = () =>
  Array.from({ length: 32 }, () => Math.floor(kernel.random() * 16).toString(16)).join("") as ReturnType<
    typeof crypto.randomUUID
  >;
