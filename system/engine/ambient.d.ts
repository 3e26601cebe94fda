/** The globals that programs on the engine have besides ECMAScript's own: those of ./globals.ts. */

interface AbortSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: (event: unknown) => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: "abort", listener: (event: unknown) => void): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

declare class TextEncoder {
  encode(text?: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label?: "utf-8", options?: { readonly ignoreBOM?: boolean });
  decode(bytes: Uint8Array): string;
}

declare class URLSearchParams {
  constructor(init: Readonly<Record<string, string>>);
  toString(): string;
}

declare const performance: { now(): number };

interface Timer {
  readonly __timer: unique symbol;
}
declare function setTimeout(callback: () => void, milliseconds?: number): Timer;
declare function clearTimeout(timer: Timer | undefined): void;
declare function queueMicrotask(callback: () => void): void;
/** By the engine itself. */
declare function atob(text: string): string;
declare function btoa(text: string): string;
