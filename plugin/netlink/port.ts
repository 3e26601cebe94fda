/** What the plugin asks of the kernel, so that everything above it runs without one. */
export interface Kernel {
  /** Moves the calling thread into the network namespace at `path`. @throws SystemError */
  enterNamespace(path: string): void;
  /** Sends one datagram to netfilter and returns every datagram it answers at once. @throws SystemError */
  exchange(request: Uint8Array): readonly Uint8Array[];
}
