import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { aligned } from "../../cli/aligned";
import type { Machine } from "./machine";
import { paths } from "./paths";
import { Kubectl, type PodOptions, pod } from "./pods";

/** The cost of starting one kind of pod. */
export interface Cost {
  /** Time that the container runtime took to make each pod's sandbox, its network included. */
  readonly sandboxMs: readonly number[];
  /** GET requests of single objects that the API server counted, for each pod. */
  readonly requests: number;
}

/** A call of RunPodSandbox, or its return, as containerd 1 and 2 log it. */
const RUN_SANDBOX =
  /^time="([^"]+)" level=info msg="RunPodSandbox for (?:&PodSandboxMetadata\{Name:|name:\\")([^,\\]+)/;

/** Milliseconds from the call of RunPodSandbox to its return, by pod, as containerd logged them. */
export async function sandboxTimes(): Promise<Map<string, number>> {
  const begun = new Map<string, number>();
  const times = new Map<string, number>();
  for (const line of (await readFile(join(paths.logs, "containerd"), "utf8")).split("\n")) {
    const [, time = "", name = ""] = RUN_SANDBOX.exec(line) ?? [];
    if (name === "") continue;
    if (line.includes(" returns sandbox id")) times.set(name, milliseconds(time) - (begun.get(name) ?? Number.NaN));
    else begun.set(name, milliseconds(time));
  }
  return times;
}

/** A time with nanoseconds, which Date would cut off to milliseconds. */
const milliseconds = (time: string) => Date.parse(time) + Number(`0.${/\.\d{3}(\d+)/.exec(time)?.[1] ?? 0}`);

/** GET requests of single pods, namespaces and services since the API server started. */
async function requestsSoFar(kubectl: Kubectl): Promise<number> {
  const metrics = await kubectl.run("get", "--raw", "/metrics");
  const counted = metrics.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
  const ours = counted.filter((line) => /resource="(pods|namespaces|services)"/.test(line) && /verb="GET"/.test(line));
  return ours.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  process.stdout.write(aligned([head, ...rows]));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}

/** Starts so many pods, one after the other. @returns the cost of each */
export async function measure(machine: Machine, name: string, count: number, options: PodOptions): Promise<Cost> {
  const kubectl = new Kubectl(machine);
  const names = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  const before = await requestsSoFar(kubectl);
  for (const each of names) {
    await kubectl.apply(pod(each, options));
    await kubectl.run("wait", `pod/${each}`, "--for=condition=Ready", "--timeout=180s");
  }
  const requests = ((await requestsSoFar(kubectl)) - before) / count;
  const times = await sandboxTimes();
  await kubectl.stop(...names);
  return { sandboxMs: names.map((each) => times.get(each) ?? Number.NaN), requests };
}
