import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Places } from "./places";
import type { Plan } from "./plan";

/**
 * What is to be said where no plugin of the chain but ours is in the directory that ours is put into: the runtime may be
 * reading another one, and then finds no plugin of ours at any pod's start. It may read several, too, so that this is no
 * reason to leave the node unchained.
 */
export function withoutNeighbours({ binDir, netDir }: Places, { chain, neighbours }: Plan): readonly string[] {
  const isThere = (type: string) => lstatSync(join(binDir, type), { throwIfNoEntry: false }) !== undefined;
  if (chain === undefined || neighbours.some(isThere)) return [];
  const types = neighbours.join(", ");
  return [
    `${binDir} holds none of the other plugins of ${join(netDir, chain)} (${types}): unless the container runtime reads ` +
      "this directory, too, no pod can start on this node; then set destCNIBinDir to the one that it reads",
  ];
}
