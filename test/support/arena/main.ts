/** A script for the host with peek.c: makes the calls that its input lists. */
import { readAll } from "../../../host/files";
import type { Host } from "../../../host/port";

declare const host: Host & Readonly<Record<string, (...args: readonly number[]) => number>>;

for (const [name, ...args] of JSON.parse(readAll(host, 0)) as readonly [string, ...number[]][]) host[name]?.(...args);
host.exit(0);
