/** Runs in a namespace: prints the answer of an address. Arguments: host, port, user, group, source address. */
import { connect } from "node:net";

const [, , host = "", port = "0", user = "0", group = "0", from = ""] = process.argv;
process.setgroups?.([]);
process.setgid?.(Number(group));
process.setuid?.(Number(user));

const socket = connect({ host, port: Number(port), ...(from === "" ? {} : { localAddress: from }) });
let answer = "";
function done(text: string): void {
  process.stdout.write(text);
  process.exit(0);
}
socket.setTimeout(60_000, () => done("no answer"));
socket.on("data", (chunk: Buffer) => {
  answer += chunk.toString();
});
socket.on("end", () => done(answer));
socket.on("error", (error: NodeJS.ErrnoException) => done(`error ${error.code ?? error.message}`));
