/** The globals of every JavaScript runtime that the engine lacks. The build prepends this to each program. */
import { Controller, Signal } from "./abort";
import { Decoder, Encoder, SearchParams } from "./encoding";
import { host } from "./host";
import { clearTimer, setTimer } from "./loop";
import type { Timer } from "./timers";

Object.assign(globalThis, {
  setTimeout: (callback: (...args: unknown[]) => void, milliseconds = 1, ...args: unknown[]) =>
    setTimer(() => callback(...args), milliseconds),
  clearTimeout: (timer?: Timer) => {
    if (timer !== undefined && timer !== null) clearTimer(timer);
  },
  AbortController: Controller,
  AbortSignal: Signal,
  TextEncoder: Encoder,
  TextDecoder: Decoder,
  URLSearchParams: SearchParams,
  performance: { now: () => host.elapsed() },
});
