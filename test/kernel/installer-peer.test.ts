import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { missing, suite } from "../support/requirements";
import { buildInstaller, TestNode } from "./installer-node";

const peer = process.env["LINKERD_CNI_INSTALL_PEER"];
const lacks = peer === undefined ? "LINKERD_CNI_INSTALL_PEER" : missing({ root: true, programs: ["unshare", "mount"] });

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"},\n  {"type":"portmap"}\n]}\n';
const SINGLE = '{"cniVersion":"0.4.0","name":"mynet","type":"ptp"}\n';

/** The peer wants its service account under /run/secrets, so it gets a /run of its own. */
const RUN = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
cp -r "$1" /run/secrets/kubernetes.io/serviceaccount && exec "$2"`;

/** Lets linkerd's own installer install, and ends it as a node's crash would: it removes nothing. */
async function installPeer(node: TestNode): Promise<void> {
  const image = join(node.root, "peer");
  mkdirSync(image);
  writeFileSync(join(image, "linkerd-cni"), "#!/bin/sh\necho old\n", { mode: 0o755 });
  const child = spawn("unshare", ["--mount", "sh", "-c", RUN, "sh", node.accountDir, peer ?? ""], {
    stdio: "ignore",
    detached: true,
    env: {
      PATH: process.env["PATH"],
      CONTAINER_MOUNT_PREFIX: node.root,
      DEST_CNI_NET_DIR: "/net.d",
      DEST_CNI_BIN_DIR: "/bin",
      CONTAINER_CNI_BIN_DIR: image,
      KUBERNETES_SERVICE_HOST: "10.0.0.1",
      KUBERNETES_SERVICE_PORT: "443",
      CNI_NETWORK_CONFIG:
        '{"name":"linkerd-cni","type":"linkerd-cni","kubernetes":{"kubeconfig":"__KUBECONFIG_FILEPATH__"}}',
    },
  });
  const ended = once(child, "exit");
  const signal = (name: string) => execFileSync("kill", [`-${name}`, "--", `-${child.pid}`]);
  const until = performance.now() + 30_000;
  // The peer truncates files and then writes them: it is held while they are looked at.
  for (;;) {
    await sleep(200);
    signal("STOP");
    await sleep(20);
    if (isInstalled(node)) break;
    if (performance.now() > until) throw new Error("the peer does not install");
    signal("CONT");
  }
  signal("KILL");
  await ended;
}

/** Whether both configurations are whole, and chained. */
function isInstalled(node: TestNode): boolean {
  try {
    return ["10-k.conflist", "20-single.conflist"].every((name) => node.isChained(name));
  } catch {
    return false; // half-written
  }
}

suite("a node that linkerd's own installer has changed", lacks, () => {
  jest.setTimeout(60_000);
  beforeAll(buildInstaller);

  test("is taken over: one chain, our plugin, a private kubeconfig; what was renamed is named", async () => {
    const node = new TestNode({ "10-k.conflist": LIST, "20-single.conf": SINGLE, "notes.txt": "x" });
    await installPeer(node);
    const theirs = JSON.parse(node.read("10-k.conflist"));
    expect(node.isChained("20-single.conflist")).toBe(true);

    const installer = node.start();
    await installer.says("ends in our stanza");
    await sleep(200);
    expect(node.isChained("10-k.conflist")).toBe(true);
    expect(node.broken()).toEqual([]);
    expect(node.answers()).toBe(true);
    expect(node.read("20-single.conflist")).not.toContain("linkerd-cni");
    expect(JSON.parse(node.read("ZZZ-linkerd-cni-kubeconfig")).users[0].user.token).toBe("token");
    expect(installer.log).toContain("20-single.conflist was probably");
    expect(installer.log).not.toContain("10-k.conflist was probably");

    expect(await installer.stop()).toBe(0);
    expect(JSON.parse(node.read("10-k.conflist"))).toEqual({ ...theirs, plugins: theirs.plugins.slice(0, -1) });
    expect(Object.keys(node.content()).sort()).toEqual([
      "net.d/10-k.conflist",
      "net.d/20-single.conflist",
      "net.d/notes.txt",
    ]);
    node.delete();
  });
});
