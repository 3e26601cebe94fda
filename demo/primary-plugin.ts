import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/**
 * The primary CNI plugin of the demonstration: gives a pod a veth pair, an address of each family and a default route.
 * Real clusters have Calico, Cilium, Flannel or another one instead.
 */
interface PrimaryConfig {
  readonly cniVersion: string;
  /** First three parts of the IPv4 /24 that the pods share. */
  readonly prefix4: string;
  /** Beginning of the IPv6 prefix that they share; absent if the kernel has no IPv6. */
  readonly prefix6?: string;
}

const ip = (...args: string[]) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "inherit"] });

/** A pod's number on its node: the last two digits of its container id. */
function podNumber(containerId: string): number {
  return Number.parseInt(containerId.slice(-2), 10);
}

/** Sets the addresses of both ends of a pair, and the pod's route. @returns the pod's entry in the result */
function address(pair: readonly [string, string, string], gateway: string, bits: number, own: string): object {
  const [host, pod, ifname] = pair;
  const family = gateway.includes(":") ? ["-6"] : [];
  const once = gateway.includes(":") ? ["nodad"] : [];
  ip(...family, "address", "add", `${gateway}/${bits}`, "dev", host, ...once);
  ip("-n", pod, ...family, "address", "add", `${own}/${bits}`, "dev", ifname, ...once);
  ip("-n", pod, ...family, "route", "add", "default", "via", gateway);
  return { interface: 0, address: `${own}/${bits}`, gateway };
}

function add({ cniVersion, prefix4, prefix6 }: PrimaryConfig, netns: string, ifname: string, number: number): object {
  const [host, pod] = [`veth${number}`, basename(netns)];
  ip("link", "add", host, "type", "veth", "peer", "name", ifname, "netns", pod);
  ip("link", "set", host, "up");
  ip("-n", pod, "link", "set", ifname, "up");
  const pair = [host, pod, ifname] as const;
  const ips = [address(pair, `${prefix4}.${number * 4 + 1}`, 30, `${prefix4}.${number * 4 + 2}`)];
  if (prefix6 !== undefined) ips.push(address(pair, `${prefix6}:${number}::1`, 64, `${prefix6}:${number}::2`));
  return { cniVersion, interfaces: [{ name: ifname, sandbox: netns }], ips };
}

function main(environment: NodeJS.ProcessEnv): void {
  const { CNI_COMMAND: verb, CNI_CONTAINERID: id = "", CNI_NETNS: netns = "", CNI_IFNAME: ifname = "" } = environment;
  const config = JSON.parse(readFileSync(0, "utf8")) as PrimaryConfig;
  if (verb === "ADD") process.stdout.write(JSON.stringify(add(config, netns, ifname, podNumber(id))));
  // Deleting one end of a veth pair also deletes the other.
  if (verb === "DEL") ip("link", "delete", "dev", `veth${podNumber(id)}`);
}

main(process.env);
