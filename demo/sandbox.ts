import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { NodePath } from "../cni/contract";
import { type Family, type Listeners, OUTSIDE, type Probe } from "./scene";

const run = promisify(execFile);
const ip = (...args: string[]) => run("ip", args);

/** Addresses of a pod from its CNI result. */
export type Addresses = Readonly<Partial<Record<Family, string>>>;

/** The network around the pods: this process's network namespace is the node's. */
export class Sandbox {
  private readonly processes: ChildProcess[] = [];
  private readonly addresses = new Map<string, Addresses>();

  private constructor(
    /** The script that replaces a pod's containers. */
    private readonly podProcess: string,
    readonly families: readonly Family[],
  ) {}

  static async create(podProcess: string): Promise<Sandbox> {
    await ip("link", "set", "lo", "up");
    await run("mount", ["-t", "tmpfs", "tmpfs", "/run"]);
    await mkdir(NodePath.runDir);
    await writeFile("/proc/sys/net/ipv4/ip_forward", "1");
    await ip("address", "add", `${OUTSIDE[4]}/32`, "dev", "lo");
    const families: Family[] = [4];
    try {
      await ip("-6", "address", "add", `${OUTSIDE[6]}/128`, "dev", "lo");
      await writeFile("/proc/sys/net/ipv6/conf/all/forwarding", "1");
      families.push(6);
    } catch {
      // On a kernel without IPv6, the demonstration uses only IPv4.
    }
    return new Sandbox(podProcess, families);
  }

  /** Creates a pod's network namespace as a runtime does, with loopback up. @returns its path */
  async addNamespace(name: string): Promise<string> {
    await ip("netns", "add", name);
    await ip("-n", name, "link", "set", "lo", "up");
    const path = `/run/netns/${name}`;
    if (this.families.includes(6)) {
      // Addresses must be usable at once, and the link has no other hosts.
      const setting = "/proc/sys/net/ipv6/conf/default/accept_dad";
      await run("nsenter", [`--net=${path}`, "sh", "-c", `echo 0 > ${setting}`]);
    }
    return path;
  }

  setAddresses(pod: string, addresses: Addresses): void {
    this.addresses.set(pod, addresses);
  }

  /** Starts a process that listens, in a pod or on the node, and waits until it does. */
  async listen(pod: string | undefined, listeners: Listeners): Promise<void> {
    const [command, ...args] = this.inside(pod, ["serve", JSON.stringify(listeners)]);
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.processes.push(child);
    await new Promise<void>((resolve, reject) => {
      let errors = "";
      child.stderr.on("data", (chunk: Buffer) => {
        errors += chunk.toString();
      });
      child.once("exit", () => reject(new Error(`the listener of ${pod ?? "the node"} ended: ${errors}`)));
      child.stdout.once("data", () => resolve());
    });
  }

  /** @returns the listener that answered, or why none did */
  async ask({ from, to, port, family, uid }: Probe): Promise<string> {
    const address = this.address(to, family);
    if (address === undefined) return `${to} has no IPv${family} address`;
    const [command, ...args] = this.inside(from, ["ask", address, String(port), String(uid ?? 0)]);
    return (await run(command, args)).stdout;
  }

  close(): void {
    for (const child of this.processes) child.kill("SIGKILL");
  }

  private address(to: string, family: Family): string | undefined {
    if (to === "loopback") return family === 4 ? "127.0.0.1" : "::1";
    return to === "outside" ? OUTSIDE[family] : this.addresses.get(to)?.[family];
  }

  private inside(pod: string | undefined, args: readonly string[]): [string, ...string[]] {
    const command: [string, ...string[]] = [process.execPath, this.podProcess, ...args];
    return pod === undefined ? command : ["nsenter", `--net=/run/netns/${pod}`, "--", ...command];
  }
}
