/// <reference types="bun-types/ffi" />
/**
 * Run by the runtime in a namespace: listens on one port of one family and tells every caller its own name and where
 * the connection was meant to go (SO_ORIGINAL_DST), as a proxy learns it. Arguments: family, port, name.
 */
import { dlopen, ptr } from "bun:ffi";

const [, , family = "4", port = "0", name = ""] = process.argv;
const six = family === "6";
const [AF, SOCK_STREAM, SOL_SOCKET, SO_REUSEADDR, SOL_IPV6, V6ONLY] = [six ? 10 : 2, 1, 1, 2, 41, 26];
const ORIGINAL_DST = { level: six ? SOL_IPV6 : 0, option: 80 };
const ADDRESS_LENGTH = six ? 28 : 16;

const { symbols: libc } = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
  accept: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  send: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  close: { args: ["i32"], returns: "i32" },
});

function checked(what: string, result: number): number {
  if (result < 0) throw new Error(`${what} failed`);
  return result;
}

function textOf(address: Buffer): string {
  const at = address.readUInt16BE(2);
  if (!six) return `${[...address.subarray(4, 8)].join(".")}:${at}`;
  const groups = Array.from({ length: 8 }, (_, index) => address.readUInt16BE(8 + 2 * index).toString(16));
  return `[${groups.join(":")}]:${at}`;
}

function originalDestination(connection: number): string {
  const address = Buffer.alloc(ADDRESS_LENGTH);
  const length = Uint32Array.of(ADDRESS_LENGTH);
  const { level, option } = ORIGINAL_DST;
  return libc.getsockopt(connection, level, option, ptr(address), ptr(length)) < 0 ? "none" : textOf(address);
}

const listener = checked("socket", libc.socket(AF, SOCK_STREAM, 0));
const one = Int32Array.of(1);
libc.setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, ptr(one), 4);
if (six) libc.setsockopt(listener, SOL_IPV6, V6ONLY, ptr(one), 4);
const local = Buffer.alloc(ADDRESS_LENGTH);
local.writeUInt16LE(AF, 0);
local.writeUInt16BE(Number(port), 2);
checked(`bind to ${port}`, libc.bind(listener, ptr(local), ADDRESS_LENGTH));
checked("listen", libc.listen(listener, 16));
process.stdout.write("listening\n");
for (;;) {
  const connection = checked("accept", libc.accept(listener, null, null));
  const answer = Buffer.from(`${name} ${originalDestination(connection)}`);
  libc.send(connection, ptr(answer), answer.length, 0);
  libc.close(connection);
}
