import type { Machine } from "./machine";
import { inPod } from "./nri";

/** As many silent connections as one client keeps; each comes again when it is closed. */
const SILENT = 64;
const CROWD = "crowd";
const CROWD_SCRIPT = `
  const [host, port] = process.argv.slice(1);
  const join = () => require("node:net").connect(port, host).on("error", () => {}).on("close", () => setTimeout(join, 1));
  for (let each = 0; each < ${SILENT}; each++) join();
`;

/** Rules that a pod with NET_ADMIN may set in its own network namespace. */
function rules(count: number): string {
  const chain = "table ip own { chain output { type nat hook output priority 100; }; }\n";
  const rule = (at: number) =>
    `add rule ip own output ip daddr 10.${at >> 16}.${(at >> 8) & 255}.${at & 255} tcp dport 1 accept\n`;
  return chain + Array.from({ length: count }, (_, at) => rule(at)).join("");
}

/** Attacks of one tenant of the node on others. */
export class HostileNeighbour {
  constructor(private readonly machine: Machine) {}

  /** Sets rules in a pod's network namespace. */
  async addRules(pod: string, count: number): Promise<void> {
    const file = "/tmp/hostile-rules";
    await this.machine.run(["sh", "-c", `cat > ${file}`], { input: rules(count) });
    await inPod(this.machine, pod, "nft", "-f", file);
  }

  /** Connects to a port, and connects again, until it is told to leave. */
  async crowd(host: string, port: number): Promise<{ leave(): Promise<void> }> {
    await this.machine.daemon(CROWD, [process.execPath, "-e", CROWD_SCRIPT, host, String(port)]);
    return { leave: () => this.machine.endDaemon(CROWD) };
  }
}
