import { API_PORT, API_SERVICE, NODE } from "./addresses";
import type { Machine } from "./machine";

/** Connections to the API server's service address reach the API server without kube-proxy. */
const RULES = ["prerouting", "output"]
  .map(
    (hook) =>
      `add chain ip cluster ${hook} { type nat hook ${hook} priority -100; }\n` +
      `add rule ip cluster ${hook} ip daddr ${API_SERVICE} tcp dport 443 dnat to ${NODE.address}:${API_PORT}\n`,
  )
  .join("");

/** Addresses the node within its network namespace, which has no way out. */
export async function connect(machine: Machine): Promise<void> {
  const commands = [
    ["ip", "link", "set", "lo", "up"],
    // A bridge without ports holds the node's address: not every kernel has the dummy interface type.
    ["ip", "link", "add", NODE.bridge, "type", "bridge"],
    ["ip", "address", "add", `${NODE.address}/24`, "dev", NODE.bridge],
    ["ip", "link", "set", NODE.bridge, "up"],
    // The service address is a local one, so that a connection from the node itself finds a route before it is redirected.
    ["ip", "address", "add", `${API_SERVICE}/32`, "dev", "lo"],
    ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"],
  ];
  for (const command of commands) await machine.run(command);
  await machine.run(["nft", "-f", "-"], { input: `add table ip cluster\n${RULES}` });
}
