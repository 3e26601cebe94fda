import { Gauge, type Registry } from "prom-client";

/** Makes gauges, their names with a prefix, whose values are read when the metrics are. */
export const gauges = (registry: Registry, prefix: string) => (name: string, help: string, read: () => number) =>
  new Gauge({
    name: `${prefix}${name}`,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
