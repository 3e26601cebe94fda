import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/**
 * The cluster's own CNI plugin, as far as a demonstration needs one: gives a pod a veth pair, an address of each
 * family and a default route. Real clusters have calico, cilium, flannel and the like in this place.
 */
interface PrimaryConfig {
  readonly cniVersion: string;
  /** First three parts of the IPv4 /24, and the beginning of the IPv6 prefix, that the pods share. */
  readonly prefix4: string;
  readonly prefix6: string;
}

const ip = (...args: string[]) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "inherit"] });

/** A pod's number on its node: the last two digits of its container id. */
function podNumber(containerId: string): number {
  return Number.parseInt(containerId.slice(-2), 10);
}

function add(config: PrimaryConfig, netns: string, ifname: string, number: number): object {
  const [host, pod] = [`veth${number}`, basename(netns)];
  const [gateway4, address4] = [`${config.prefix4}.${number * 4 + 1}`, `${config.prefix4}.${number * 4 + 2}`];
  const [gateway6, address6] = [`${config.prefix6}:${number}::1`, `${config.prefix6}:${number}::2`];
  ip("link", "add", host, "type", "veth", "peer", "name", ifname, "netns", pod);
  ip("address", "add", `${gateway4}/30`, "dev", host);
  ip("-6", "address", "add", `${gateway6}/64`, "dev", host, "nodad");
  ip("link", "set", host, "up");
  ip("-n", pod, "link", "set", ifname, "up");
  ip("-n", pod, "address", "add", `${address4}/30`, "dev", ifname);
  ip("-n", pod, "-6", "address", "add", `${address6}/64`, "dev", ifname, "nodad");
  ip("-n", pod, "route", "add", "default", "via", gateway4);
  ip("-n", pod, "-6", "route", "add", "default", "via", gateway6);
  return {
    cniVersion: config.cniVersion,
    interfaces: [{ name: ifname, sandbox: netns }],
    ips: [
      { interface: 0, address: `${address4}/30`, gateway: gateway4 },
      { interface: 0, address: `${address6}/64`, gateway: gateway6 },
    ],
  };
}

function main(environment: NodeJS.ProcessEnv): void {
  const { CNI_COMMAND: verb, CNI_CONTAINERID: id = "", CNI_NETNS: netns = "", CNI_IFNAME: ifname = "" } = environment;
  const config = JSON.parse(readFileSync(0, "utf8")) as PrimaryConfig;
  if (verb === "ADD") process.stdout.write(JSON.stringify(add(config, netns, ifname, podNumber(id))));
  // Both ends of a veth pair go with either of them.
  if (verb === "DEL") ip("link", "delete", "dev", `veth${podNumber(id)}`);
}

main(process.env);
