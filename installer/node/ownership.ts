import { statSync } from "node:fs";
import type { Change, Owner } from "./disk";

const text = ({ uid, gid }: Owner): string => `${uid}:${gid}`;

/** What is to be said where a file did not get the owner that it should have: without CAP_CHOWN nobody can give it. */
export function strayed(change: Change): string | undefined {
  if ((change.do !== "write" && change.do !== "keep") || change.owner === undefined) return undefined;
  const found = statSync(change.path, { throwIfNoEntry: false });
  if (found === undefined || text(found) === text(change.owner)) return undefined;
  return `${change.path} belongs to ${text(found)} instead of ${text(change.owner)}: only with CAP_CHOWN (value privileged) can it be given back`;
}
