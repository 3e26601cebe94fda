/** Built into an executable and run inside a namespace: sends the bytes on standard input as one datagram, in hex. */
import { readAll, writeAll } from "../../host/files";
import type { Host } from "../../host/port";
import { messages, readNative32 } from "../../netlink/codec";
import { netfilter } from "../../netlink/socket";

declare const host: Host;

const hex = readAll(host, 0).replaceAll("\n", "");
const datagram = Uint8Array.from({ length: hex.length / 2 }, (_, at) =>
  Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16),
);
const replies = netfilter(host)(datagram).flatMap((reply) => [...messages(reply)]);
writeAll(host, 1, `${replies.map(({ payload }) => readNative32(payload)).join(" ")}\n`);
host.exit(0);
