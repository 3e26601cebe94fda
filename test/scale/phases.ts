/** What happens in each phase of the simulation: time, traffic, processors and memory. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { RealApi } from "../support/real-api";
import type { ScaleNode } from "./nodes";

export const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

/** Traffic of the API server's port so far, as the kernel counts it. */
export class Traffic {
  constructor(port: number) {
    const rules = `table inet scale {
      counter connections {}
      counter asked {}
      counter answered {}
      chain input {
        type filter hook input priority 0;
        tcp dport ${port} tcp flags & (syn | ack) == syn counter name connections
        tcp dport ${port} counter name asked
        tcp sport ${port} counter name answered
      }
    }`;
    execFileSync("nft", ["-f", "-"], { input: rules });
  }

  read(): { readonly connections: number; readonly asked: number; readonly answered: number } {
    const text = execFileSync("nft", ["--json", "list", "counters"], { encoding: "utf8" });
    type Listed = { nftables: { counter?: { name: string; packets: number; bytes: number } }[] };
    const counters = (JSON.parse(text) as Listed).nftables.flatMap(({ counter }) => counter ?? []);
    const of = (name: string) => counters.find((counter) => counter.name === name);
    return {
      connections: of("connections")?.packets ?? 0,
      asked: of("asked")?.bytes ?? 0,
      answered: of("answered")?.bytes ?? 0,
    };
  }
}

/** Seconds of a processor that a process has taken; 0 once it has ended. */
function cpuSeconds(pid: number): number {
  if (!existsSync(`/proc/${pid}`)) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export const kibibytes = (path: string, key: string) =>
  Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? 0);
const residentMiB = (pid: number) =>
  existsSync(`/proc/${pid}`) ? Math.round(kibibytes(`/proc/${pid}/status`, "VmRSS") / 1024) : 0;

export interface Phase {
  readonly name: string;
  /** By how many nodes its requests are divided; absent if that tells nothing. */
  readonly nodes?: number;
  readonly begun: number;
  readonly ended: number;
  readonly connections: number;
  readonly asked: number;
  readonly answered: number;
  readonly apiServerCpu: number;
  /** 0 if it does not run at the end. */
  readonly apiServerMiB: number;
  readonly etcdMiB: number;
  /** Of those that run at the end, which others may have been at the beginning. */
  readonly nodesCpu: number;
}

/** Runs the phases one after another, and measures each. */
export class Simulation {
  readonly phases: Phase[] = [];

  constructor(
    private readonly api: RealApi,
    private readonly traffic: Traffic,
    private readonly nodes: readonly ScaleNode[],
  ) {}

  /** @param nodes whose requests they are, if the phase shows what one requests */
  async phase(name: string, work: () => Promise<unknown>, nodes?: number): Promise<void> {
    say(name);
    const before = { ...this.traffic.read(), cpu: cpuSeconds(this.api.pids.apiServer), nodes: this.nodesCpu() };
    const { apiServer } = this.api.pids;
    const begun = Date.now();
    await work();
    const after = this.traffic.read();
    const { pids } = this.api;
    this.phases.push({
      name,
      ...(nodes === undefined ? {} : { nodes }),
      begun,
      ended: Date.now(),
      connections: after.connections - before.connections,
      asked: after.asked - before.asked,
      answered: after.answered - before.answered,
      // The counter of a process that was restarted began at 0.
      apiServerCpu: Math.max(0, cpuSeconds(pids.apiServer) - (pids.apiServer === apiServer ? before.cpu : 0)),
      apiServerMiB: residentMiB(pids.apiServer),
      etcdMiB: residentMiB(pids.etcd),
      nodesCpu: Math.max(0, this.nodesCpu() - before.nodes),
    });
  }

  private nodesCpu(): number {
    return this.nodes.flatMap(({ pids }) => pids).reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  }
}
