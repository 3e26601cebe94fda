import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../support/until";
import { NODE } from "./addresses";
import { makeAccountsKey } from "./certificates";
import { makeCgroups, removeCgroups } from "./cgroups";
import { startDaemon } from "./cluster";
import { apiServer, controlPlane } from "./control-plane";
import type { Machine } from "./machine";
import { mountRun, unmount } from "./mounts";
import { kubelet } from "./node";
import { runtime } from "./runtimes";

/** Runs something while the API server is down, which it is for at least so long. */
export async function withoutApiServer(machine: Machine, seconds: number, work: () => Promise<void>): Promise<void> {
  await machine.endDaemon(apiServer.name, "KILL");
  try {
    await Promise.all([sleep(seconds * 1000), work()]);
  } finally {
    await startDaemon(machine, apiServer);
  }
}

/** Starts the container runtime and the kubelet again while the API server is down. */
export async function restartRuntimeAlone(machine: Machine): Promise<void> {
  await withoutApiServer(machine, 0, async () => {
    for (const { name } of [kubelet, runtime()]) await machine.endDaemon(name, "KILL");
    for (const daemon of [runtime(), kubelet]) await startDaemon(machine, daemon);
  });
}

/** Ids of the container runtime's sandboxes, except those of these pods. */
export async function sandboxes(machine: Machine, but: readonly string[]): Promise<string[]> {
  const others = but.map((name) => `labels."io.kubernetes.pod.name"!=${name}`);
  const filter = ['labels."io.cri-containerd.kind"==sandbox', ...others].join(",");
  const ids = await machine.run(["ctr", "--namespace=k8s.io", "containers", "ls", "--quiet", filter]);
  return ids.split("\n").sort();
}

/** Gives the cluster another key for service accounts: every token made before is refused from now on. */
export async function replaceAccountsKey(machine: Machine): Promise<void> {
  await makeAccountsKey();
  const readers = controlPlane.filter(({ command }) => command.some((word) => word.includes("service-account")));
  for (const { name } of readers) await machine.endDaemon(name, "KILL");
  for (const daemon of readers) await startDaemon(machine, daemon);
}

/** Sends the installer a signal: KILL ends it as the kernel does when memory runs out, STOP keeps it from acting. */
export async function signalInstaller(machine: Machine, signal: "KILL" | "STOP" | "CONT"): Promise<void> {
  await machine.run(["pkill", `-${signal}`, "-f", "^/opt/cni/bin/linkerd-cni install"]);
}

/** Runs something while the installer's pod reaches nothing: its packets are dropped. */
export async function withoutNetwork(machine: Machine, work: () => Promise<void>): Promise<void> {
  const pid = await machine.run(["pgrep", "-n", "-f", "^/opt/cni/bin/linkerd-cni install"]);
  const nft = (...args: string[]) => machine.run(["nsenter", "--target", pid.trim(), "--net", "nft", ...args]);
  await nft("add table inet cut; add chain inet cut out { type filter hook output priority 0; policy drop; }");
  try {
    await work();
  } finally {
    await nft("delete table inet cut");
  }
}

const KILL_OTHERS = `keep=" 1 $$ $* "
for pid in $(ls /proc | grep '^[0-9]'); do
  case "$keep" in *" $pid "*) ;; *) kill -9 "$pid" 2>/dev/null ;; esac
done; true`;

/** Has the API server evict the installer's pod, as draining a node and descheduling do. */
export async function evictInstaller(machine: Machine): Promise<void> {
  const metadata = { namespace: "linkerd-cni", name: await installerPod(machine) };
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/eviction`;
  const input = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata });
  await machine.run(["kubectl", "create", "--raw", path, "-f", "-"], { input });
}

/** Removes the installer's pod from the API at once, whatever its node still does. */
export async function forceDeleteInstaller(machine: Machine): Promise<void> {
  const pod = ["pod", await installerPod(machine), "--namespace=linkerd-cni"];
  await machine.run(["kubectl", "delete", ...pod, "--grace-period=0", "--force"]);
}

/** Follows the installer's log from its first line on. @returns what waits for its end */
export async function followInstaller(machine: Machine): Promise<() => Promise<string>> {
  const pod = await installerPod(machine);
  const [program = "", ...args] = machine.enter(["kubectl", "logs", "--namespace=linkerd-cni", "--follow", pod]);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  let log = "";
  child.stdout.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  await until("the installer's log", async () => log !== "" || child.exitCode !== null);
  return async () => {
    await ended;
    return log;
  };
}

async function installerPod(machine: Machine): Promise<string> {
  const which = [
    "--namespace=linkerd-cni",
    "--selector=k8s-app=linkerd-cni",
    "--output=jsonpath={.items[*].metadata.name}",
  ];
  return machine.run(["kubectl", "get", "pods", ...which]);
}

/** Lets the node lose power and start again. */
export async function reboot(machine: Machine): Promise<void> {
  await powerOff(machine);
  await powerOn(machine);
}

/** Ends the node, its control plane apart: no process, no mount, no cgroup and nothing in /run outlives it. */
export async function powerOff(machine: Machine): Promise<void> {
  const pids = await Promise.all(controlPlane.map(({ name }) => machine.pidOf(name)));
  // First the processes that would clean up after, or restart, the ones that are killed next.
  for (const { name } of [kubelet, runtime()]) await machine.endDaemon(name, "KILL");
  await machine.run(["sh", "-c", KILL_OTHERS, "sh", ...pids.map(String)]);
  await removeCgroups();
  await makeCgroups();
  await unmount(machine, /^\/var\/lib\/(kubelet|containerd|containers)\//);
  await mountRun(machine);
  await machine.run(["ip", "link", "delete", NODE.podBridge]);
}

/** Starts the node. @param flags additional flags for the kubelet */
export async function powerOn(machine: Machine, ...flags: string[]): Promise<void> {
  const started = { ...kubelet, command: [...kubelet.command, ...flags] };
  for (const daemon of [runtime(), started]) await startDaemon(machine, daemon);
}
