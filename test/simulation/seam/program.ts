/** `system/program` on the simulated machine. */
import type * as program from "../../../system/program";
import { kernel } from "./kernel";

export const { args, environment } = kernel;
export const write: typeof program.write = (text) => kernel.write(text);
export const onStop: typeof program.onStop = (stop) => kernel.onStop(stop);
export const limitMemory: typeof program.limitMemory = () => undefined;
export const start: typeof program.start = (main) => void main().then((code) => kernel.exit(code));
