/** Globals of a process: time and chance are the simulated machine's. */
import { EPOCH } from "../clock";
import { kernel } from "./kernel";

/** Node's are slow, and the engine has its own. */
export { Controller as AbortController, Signal as AbortSignal } from "../../../system/engine/abort";

export const setTimeout = (callback: () => void, ms = 1) => kernel.setTimer(callback, ms);
export const clearTimeout = (timer: ReturnType<typeof setTimeout> | undefined) => {
  if (timer !== undefined) timer.isCleared = true;
};
export const performance = { now: () => kernel.now() };

const Real = globalThis.Date;
class VirtualDate extends Real {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [VirtualDate.now()] : given) as [number]));
  }
  static override now = () => EPOCH + kernel.now();
}
const VirtualMath = Object.create(globalThis.Math, { random: { value: () => kernel.random() } });

export { VirtualDate as Date, VirtualMath as Math };
