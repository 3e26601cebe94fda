import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { registryConfig } from "../support/oci-registry";
import { NODE } from "./addresses";
import { startDaemon } from "./cluster";
import type { Machine } from "./machine";
import { paths } from "./paths";

/** The address of the registry. */
export const REGISTRY = `${NODE.address}:5000`;

/** The registry's own programs. */
export const REGISTRY_PROGRAMS = ["docker-registry", "oras"] as const;

/** Starts a registry on the node's address, and tells the container runtime that it speaks HTTP without TLS. */
export async function startRegistry(machine: Machine): Promise<void> {
  const config = join(paths.state, "registry.json");
  await writeFile(config, registryConfig(REGISTRY, join(paths.state, "registry")));
  const hosts = join(paths.registries, REGISTRY);
  await mkdir(hosts, { recursive: true });
  const host = `[host."http://${REGISTRY}"]\n  capabilities = ["pull", "resolve"]\n`;
  await writeFile(join(hosts, "hosts.toml"), `server = "http://${REGISTRY}"\n${host}`);
  await startDaemon(machine, {
    name: "docker-registry",
    command: ["docker-registry", "serve", config],
    ready: ["oras", "repo", "ls", "--plain-http", REGISTRY],
  });
}
