import { setTimeout as sleep } from "node:timers/promises";
import { NODE } from "./addresses";
import { makeAccountsKey } from "./certificates";
import { makeCgroups, removeCgroups } from "./cgroups";
import { startDaemon } from "./cluster";
import { apiServer, controlPlane } from "./control-plane";
import type { Machine } from "./machine";
import { mountRun, unmount } from "./mounts";
import { containerd, kubelet } from "./node";

/** Runs something while the API server is down, which it is for at least so long. */
export async function withoutApiServer(machine: Machine, seconds: number, work: () => Promise<void>): Promise<void> {
  await machine.endDaemon(apiServer.name, "KILL");
  try {
    await Promise.all([sleep(seconds * 1000), work()]);
  } finally {
    await startDaemon(machine, apiServer);
  }
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
  await machine.run(["pkill", `-${signal}`, "-f", "/opt/linkerd-cni/installer.js"]);
}

const KILL_OTHERS = `keep=" 1 $$ $* "
for pid in $(ls /proc | grep '^[0-9]'); do
  case "$keep" in *" $pid "*) ;; *) kill -9 "$pid" 2>/dev/null ;; esac
done; true`;

/** Lets the node lose power, its control plane apart: no process, no mount, no cgroup and nothing in /run outlives it. */
export async function reboot(machine: Machine): Promise<void> {
  const pids = await Promise.all(controlPlane.map(({ name }) => machine.pidOf(name)));
  // First those that would tidy up after, or start again, what is killed next.
  for (const { name } of [kubelet, containerd]) await machine.endDaemon(name, "KILL");
  await machine.run(["sh", "-c", KILL_OTHERS, "sh", ...pids.map(String)]);
  await removeCgroups();
  await makeCgroups();
  await unmount(machine, /^\/var\/lib\/(kubelet|containerd)\//);
  await mountRun(machine);
  await machine.run(["ip", "link", "delete", NODE.podBridge]);
  for (const daemon of [containerd, kubelet]) await startDaemon(machine, daemon);
}
