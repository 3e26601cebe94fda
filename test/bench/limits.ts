/** Calls as large as a cluster could make them. */
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { injected, type LargeCall, stanza } from "./measure";

const count = <T>(length: number, make: (at: number) => T): T[] => Array.from({ length }, (_, at) => make(at));

const route = (at: number) => ({ dst: `10.${at >> 8}.${at & 255}.0/24`, gw: "10.0.0.1" });
/** Bytes of a route, its comma included, at the shortest. */
const ROUTE_BYTES = JSON.stringify(route(0)).length + 1;

const digits = (at: number) => `${at}`.padStart(5, "0");
/** Kubernetes counts names and values: 13 bytes each. */
const annotations = Object.fromEntries(count(20_000, (at) => [`k${digits(at)}`, `v-${digits(at)}`]));

/** Two ports, and two between them and the next, so that they cannot be merged. */
const range = (at: number) => `${10_000 + 4 * at}-${10_001 + 4 * at}`;
const ranges = (length: number) => ({ linkerd: { ...stanza, "outbound-ports-to-ignore": count(length, range) } });

export const largeCalls: readonly LargeCall[] = [
  {
    what: "1 MiB of standard input (routes)",
    config: {
      prevResult: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "eth0" }],
        ips: [{ address: "10.0.0.2/24", interface: 0 }],
        routes: count(Math.floor(2 ** 20 / (ROUTE_BYTES + 2)), route),
      },
    },
  },
  { what: "JSON nested 20,000 deep", depth: 20_000 },
  {
    what: "256 KiB of annotations, 20,000 keys",
    config: { runtimeConfig: { [POD_ANNOTATIONS]: { ...annotations, ...injected } } },
  },
  { what: "a pod object of 3 MiB", pod: "large" },
  { what: "1,000 port ranges", config: ranges(1000) },
  { what: "1,001 port ranges", config: ranges(1001) },
];
