/** Run by the runtime inside a namespace: sends each line of a golden file, all as one datagram, prints the answers. */
import { readFileSync } from "node:fs";
import { exitNow } from "../../plugin/libc";
import { messages } from "../../plugin/netlink/codec";
import { linuxKernel } from "../../plugin/netlink/linux";

const [, , path = ""] = process.argv;
const datagram = Buffer.from(readFileSync(path, "utf8").replaceAll("\n", ""), "hex");
const replies = linuxKernel.exchange(datagram).flatMap((reply) => [...messages(reply)]);
process.stdout.write(`${replies.map(({ payload }) => payload.readInt32LE(0)).join(" ")}\n`);
exitNow(0);
