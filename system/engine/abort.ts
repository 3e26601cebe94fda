/** The parts of AbortController and AbortSignal that programs use. */

type Listener = (this: Signal) => void;

/** If a listener throws, the program ends after the other listeners were called. */
function callSafely(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Aborts a signal; not a member, so that only the controller can call it. */
const aborting = new WeakMap<Signal, (reason: unknown) => void>();

/** The global AbortSignal. */
export class Signal {
  private readonly listeners = new Set<Listener>();
  private state: { readonly reason: unknown } | undefined;

  constructor() {
    aborting.set(this, (reason) => {
      if (this.state !== undefined) return;
      this.state = { reason };
      const listeners = [...this.listeners];
      this.listeners.clear();
      for (const listener of listeners) callSafely(() => listener.call(this));
    });
  }

  get aborted(): boolean {
    return this.state !== undefined;
  }

  /** Undefined until it aborts. */
  get reason(): unknown {
    return this.state?.reason;
  }

  /** Each listener is called once, since a signal aborts only once. */
  addEventListener(type: string, listener: Listener): void {
    if (type === "abort" && this.state === undefined) this.listeners.add(listener);
  }

  removeEventListener(type: string, listener: Listener): void {
    if (type === "abort") this.listeners.delete(listener);
  }
}

/** The global AbortController. */
export class Controller {
  readonly signal = new Signal();

  /** @param reason default: an AbortError */
  abort(reason: unknown = Object.assign(new Error("This operation was aborted"), { name: "AbortError" })): void {
    aborting.get(this.signal)?.(reason);
  }
}
