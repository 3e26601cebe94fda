import { accessSync, constants } from "node:fs";
import { which } from "../support/requirements";
import { goProblems } from "./go";
import { paths } from "./paths";

/** Programs of the machine, and the Debian package that brings each. */
const PACKAGES: Readonly<Record<string, string>> = {
  containerd: "containerd",
  ctr: "containerd",
  "containerd-shim-runc-v2": "containerd",
  runc: "runc",
  etcd: "etcd-server",
  ip: "iproute2",
  mount: "mount",
  nft: "nftables",
  nsenter: "util-linux",
  unshare: "util-linux",
};
/** Debian's directory of the reference CNI plugins. */
export const CNI_PLUGINS = "/usr/lib/cni";

/** Directories that the machine sees through a layer of its own: a checkout below them would be hidden from it. */
const LAYERED = ["/etc/", "/opt/", "/var/", "/run/"];

const present = (path: string) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Everything that a cluster needs and this machine lacks, each with a remedy. */
export function missing(): string[] {
  const packages = Object.entries(PACKAGES).flatMap(([program, name]) => (which(program) ? [] : [name]));
  if (!present(`${CNI_PLUGINS}/bridge`)) packages.push("containernetworking-plugins");
  return [
    ...(process.platform === "linux" ? [] : ["a cluster needs Linux"]),
    ...(process.getuid?.() === 0 ? [] : ["a cluster needs root: sudo npm run cluster -- up"]),
    ...(packages.length === 0 ? [] : [`apt-get install ${[...new Set(packages)].join(" ")}`]),
    ...goProblems(),
    ...LAYERED.filter((directory) => paths.state.startsWith(directory)).map(
      (directory) => `${paths.state} must not lie below ${directory}: move the checkout`,
    ),
  ];
}
