/** `system/exchange` on the simulated machine. */
import { call } from "./fs";

export const exchangeSync = call<(one: string, other: string) => void>("exchange");
