/** Globals that are slow in Node, as the engine has them. */
export { Controller as AbortController, Signal as AbortSignal } from "../../../system/engine/abort";
