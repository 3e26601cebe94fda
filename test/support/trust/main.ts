/** A script for the host with verify.c: judges the chains that its input lists, and prints the result of each. */
import { readAll, writeAll } from "../../../host/files";
import type { Host } from "../../../host/port";
import { problemOf } from "../../../host/scripts/certificates";
import type { Chain, Verdict } from "./chains";

declare const host: Host & {
  verify(authorities: string, chain: string, name: string, judge: typeof problemOf): Verdict;
};

const chains = JSON.parse(readAll(host, 0)) as readonly Chain[];
writeAll(host, 1, JSON.stringify(chains.map(({ roots, chain, name }) => host.verify(roots, chain, name, problemOf))));
host.exit(0);
