import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { outputs } from "../../build/paths";
import type { Progress } from "../../build/progress";
import { NODE } from "./addresses";
import { buildBinaries, buildContainerd, programs } from "./binaries";
import { makeCredentials } from "./certificates";
import { makeCgroups, removeCgroups } from "./cgroups";
import { controlPlane, type Daemon } from "./control-plane";
import { importImage, importTestImages } from "./images";
import { Machine } from "./machine";
import { mountDisk } from "./mounts";
import { connect } from "./network";
import { kubelet, prepareNode } from "./node";
import { paths } from "./paths";
import { missing } from "./requirements";
import { preparedRuntime, type RuntimeName, runtime } from "./runtimes";

/** Every daemon of the cluster, in the order in which they start. */
const daemons = (): readonly Daemon[] => [...controlPlane, runtime(), kubelet];

const NEVER = new AbortController().signal;

/**
 * Starts a one-node cluster; first builds programs that are not cached. Reuses a running cluster if it is complete and
 * as requested. @param signal ends a start in progress
 */
export async function up(progress: Progress, name: RuntimeName = "1", signal = NEVER): Promise<Machine> {
  const running = await Machine.find();
  if (running !== undefined) return asAskedFor(running, name);
  const problems = missing();
  if (problems.length > 0) throw new Error(`this machine cannot run a cluster yet:\n  ${problems.join("\n  ")}`);
  await buildBinaries(progress, signal);
  // CRI-O takes the CNI plugins from there.
  const version = name === "crio" ? "2" : name;
  const built = version === "1" ? undefined : await buildContainerd(version, progress, signal);
  await removeRemains();
  let ending: Promise<void> | undefined;
  const end = () => {
    // Functions that wait for something in the machine must stop waiting.
    ending = Machine.find().then((machine) => machine?.stop());
  };
  signal.addEventListener("abort", end);
  try {
    const machine = await start(progress, name, built, signal);
    signal.throwIfAborted();
    return machine;
  } catch (error) {
    await ending;
    await down();
    throw error;
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** @throws if the running cluster is another one, or incomplete */
async function asAskedFor(machine: Machine, name: RuntimeName): Promise<Machine> {
  const lacking = (await processes(machine)).filter(({ pid }) => pid === undefined).map((daemon) => daemon.name);
  const found = await preparedRuntime();
  const problems = [
    ...(lacking.length > 0 ? [`without ${lacking.join(", ")}`] : []),
    ...(found === name ? [] : [found === "crio" ? "with CRI-O" : `with containerd ${found}`]),
  ];
  if (problems.length === 0) return machine;
  throw new Error(`a cluster runs here ${problems.join(" and ")}; end it first: npm run cluster -- down`);
}

async function start(
  progress: Progress,
  name: RuntimeName,
  built: string | undefined,
  signal: AbortSignal,
): Promise<Machine> {
  for (const directory of [paths.logs, paths.pids, paths.home]) await mkdir(directory, { recursive: true });
  const machine = await progress.step("namespaces, disk and network of the node", async () => {
    const made = await Machine.start(programs);
    signal.throwIfAborted();
    await mountDisk(made);
    await connect(made);
    await makeCgroups();
    await makeCredentials();
    await prepareNode(name, built);
    return made;
  });
  const steps = [
    progress.step("container runtime and images", async () => {
      await startDaemon(machine, runtime());
      await importTestImages(machine);
      if (existsSync(outputs.image)) await importImage(machine, outputs.image);
    }),
    progress.step("control plane", async () => {
      for (const daemon of controlPlane) await startDaemon(machine, daemon);
    }),
  ];
  // None of them continues if another has failed and everything is removed.
  await Promise.allSettled(steps);
  await Promise.all(steps);
  await progress.step("node ready", async () => {
    await startDaemon(machine, kubelet);
    await waitForNode(machine);
  });
  return machine;
}

/** Starts a daemon and waits until it is of use. */
export async function startDaemon(machine: Machine, daemon: Daemon): Promise<void> {
  await machine.daemon(daemon.name, daemon.command);
  const { ready } = daemon;
  if (ready === undefined) return;
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(100)) {
    const works = await (typeof ready === "function" ? ready(machine) : machine.run(ready)).then(
      () => true,
      () => false,
    );
    if (works) return;
    if (!(await machine.runs())) throw new Error(`the machine has ended before ${daemon.name} was ready`);
  }
  throw new Error(`${daemon.name} is not ready after 60 s: see ${paths.logs}/${daemon.name}`);
}

async function waitForNode(machine: Machine): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(200)) {
    const found = await machine.run(["kubectl", "get", "node", NODE.name, "--ignore-not-found", "--output=name"]);
    if (found !== "") break;
  }
  await machine.run(["kubectl", "wait", "node", NODE.name, "--for=condition=Ready", "--timeout=180s"]);
}

/** Ends the cluster and removes all of its state; the built programs stay. */
export async function down(): Promise<void> {
  await (await Machine.find())?.stop();
  await removeRemains();
}

async function removeRemains(): Promise<void> {
  await removeCgroups();
  await rm(paths.state, { recursive: true, force: true });
}

/** Every running daemon with its process id inside the machine. */
async function processes(machine: Machine): Promise<{ name: string; pid: number | undefined }[]> {
  return Promise.all(daemons().map(async ({ name }) => ({ name, pid: await machine.pidOf(name) })));
}

/** The running daemons, and the API server's state. Whole: nothing is missing. */
export async function status(): Promise<{ readonly text: string; readonly whole: boolean }> {
  const machine = await Machine.find();
  if (machine === undefined) return { text: "no cluster runs here: npm run cluster -- up\n", whole: false };
  const found = await processes(machine);
  const lines = found.map(
    ({ name, pid }) =>
      `${name.padEnd(26)}${pid === undefined ? `not running: see ${paths.logs}/${name}` : `pid ${pid}`}\n`,
  );
  const objects = await machine.run(["kubectl", "get", "nodes,pods", "--all-namespaces"]).then(
    (text) => ({ text, known: true }),
    (error) => ({ text: `${error}\n`, known: false }),
  );
  const whole = objects.known && found.every(({ pid }) => pid !== undefined);
  return { text: `${lines.join("")}\n${objects.text}`, whole };
}
