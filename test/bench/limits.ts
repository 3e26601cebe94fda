/** Calls as large as a cluster could make them, and namespaces as full as a pod with NET_ADMIN could make them. */
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { injected, type LargeCall, stanza } from "./measure";

const count = <T>(length: number, make: (at: number) => T): T[] => Array.from({ length }, (_, at) => make(at));

const route = (at: number) => ({ dst: `10.${at >> 8}.${at & 255}.0/24`, gw: "10.0.0.1" });
/** Bytes of the shortest route, including its comma. */
const ROUTE_BYTES = JSON.stringify(route(0)).length + 1;

const digits = (at: number) => `${at}`.padStart(5, "0");
/** Kubernetes counts names and values: 13 bytes each. */
const annotations = (length: number) =>
  Object.fromEntries(count(length, (at) => [`k${digits(at)}`, `v-${digits(at)}`]));
const annotated = (more: Readonly<Record<string, string>>) => ({
  runtimeConfig: { [POD_ANNOTATIONS]: { ...more, ...injected } },
});
/** As many as the plugin accepts; it merges them. */
const network = (at: number) => `10.0.${at >> 8}.${at & 255}/32`;
const networks = ["10.0.0.0/8", ...count(4999, network)];

/** Two ports, and two between them and the next, so that they cannot be merged. */
const range = (at: number) => `${10_000 + 4 * at}-${10_001 + 4 * at}`;
const ranges = (length: number) => ({ linkerd: { ...stanza, "outbound-ports-to-ignore": count(length, range) } });

const rules = (table: string) =>
  [
    `add table ip ${table}`,
    `add chain ip ${table} inbound`,
    ...count(10_000, () => `add rule ip ${table} inbound tcp dport 80 accept`),
  ].join("\n");

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
  { what: "256 KiB of annotations, 20,000 keys", config: annotated(annotations(20_000)) },
  { what: "1 MiB of annotations, 80,000 keys", config: annotated(annotations(80_000)) },
  {
    what: "5,000 networks in each of two lists",
    config: { linkerd: { ...stanza, "subnets-to-ignore": networks, "outbound-subnets-to-ignore": networks } },
  },
  { what: "a pod object of 3 MiB", pod: "large" },
  { what: "1,000 port ranges", config: ranges(1000) },
  { what: "1,001 port ranges", config: ranges(1001) },
  { what: "ADD, 10,000 rules of the pod", nft: rules("own") },
  { what: "CHECK, 10,000 rules of the pod", verb: "CHECK", nft: rules("own") },
  { what: "CHECK, 10,000 rules in the plugin's table", verb: "CHECK", nft: rules("linkerd-cni") },
];
