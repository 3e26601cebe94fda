/**
 * A node's plugin when the image's plugin does not run there, when it replaces a former version, and on a slow disk.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiStub, json } from "../support/api-server";
import { get as getAt } from "../support/http";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, SMALL_PLUGIN, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const PORT = 19_874;

let api: ApiStub;
let node: TestNode;
let installer: Installer;
beforeAll(async () => {
  await buildPrograms();
  api = await ApiStub.start(json(200, {}));
});
afterAll(() => api.close());
beforeEach(() => {
  node = new TestNode({ "10-k.conflist": LIST });
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
});
afterEach(async () => {
  await installer.stop("SIGKILL");
  node.delete();
});

const server = () => ({ KUBERNETES_SERVICE_PORT: String(api.port) });
const image = () => join(node.imageDir, "linkerd-cni");
const script = (text: string) => writeFileSync(image(), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
const binaries = (content: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(content).filter(([name]) => name.startsWith("bin/")));
const get = (path: string) => getAt(PORT, path);

/** A program of this machine, which says that it is of another one. */
function foreign(): void {
  copyFileSync("/bin/true", image());
  const bytes = readFileSync(image());
  bytes.writeUInt16LE(243, 18); // RISC-V
  writeFileSync(image(), bytes);
  chmodSync(image(), 0o755);
}

const refusals: readonly (readonly [string, () => void, string])[] = [
  ["needs another processor", () => script("kill -ILL $$"), "an instruction that this node's processor lacks (SIGILL)"],
  ["is of another architecture", foreign, "another processor architecture than this node's"],
  ["is killed", () => script("kill -KILL $$"), "a memory limit, of the container or the node, or a security agent"],
  ["hangs", () => script("exec sleep 60"), "no answer within 5000 ms"],
  ["prints without end", () => script("yes"), "prints more than 65536 bytes"],
  ["prints something else", () => script("echo hello"), 'it exits with 0 and prints "hello"'],
  ["names no versions", () => script('echo \'{"cniVersion":"1.0.0"}\''), 'prints "{\\"cniVersion\\"'],
  ["fails", () => script("echo no memory >&2; exit 3"), 'it exits with 3 and prints "no memory"'],
  ["lacks its interpreter", () => writeFileSync(image(), "#!/nonexistent\n", { mode: 0o755 }), "(ENOENT)"],
];

test.each(refusals)(
  "a plugin that %s does not replace a working one, which stays with its chain",
  async (_, make, why) => {
    node.installFormer();
    const before = binaries(node.content());
    make();
    installer = node.start({ HEALTH_PORT: String(PORT), UNINSTALL_ON_STOP: "never", ...server() });
    await installer.says("does not answer VERSION on this node");
    // On a busy machine the first tries may take too long for another reason.
    await until(why, async () => (await get("/ready")).text.includes(why));
    expect((await get("/ready")).status).toBe(503);
    await installer.says(why);
    expect(node.answers()).toBe(true);
    expect(binaries(node.content())).toMatchObject(before);
    // The working installation continues: its token is renewed, and the primary CNI's new file is chained.
    node.write("10-k.conflist", LIST);
    await until("the chain", () => node.isChained("10-k.conflist"));
    expect((await get("/live")).status).toBe(200);
  },
);

test("a plugin that does not run is tried again and written once; one that runs replaces it", async () => {
  node.installFormer();
  const asked = join(node.root, "asked");
  script(`echo asked >> ${asked}; exit 1`);
  installer = node.start(server());
  await installer.says("does not answer VERSION on this node");
  const { ino } = statSync(join(node.binDir, "linkerd-cni.linkerd-cni-tmp"));
  await until("the next try", () => {
    node.write("20-other.conflist", LIST); // makes it look again
    return readFileSync(asked, "utf8") !== "asked\n";
  });
  expect(statSync(join(node.binDir, "linkerd-cni.linkerd-cni-tmp")).ino).toBe(ino);
  await installer.stop("SIGKILL");
  script(SMALL_PLUGIN);
  installer = node.start(server());
  await installer.says("ends in our stanza");
  expect(binaries(node.content())["bin/linkerd-cni"]).toBe(readFileSync(image(), "utf8"));
  expect(Object.keys(binaries(node.content()))).not.toContain("bin/linkerd-cni.linkerd-cni-tmp");
});

suite("a plugin directory that is mounted noexec", missing({ root: true, programs: ["unshare", "mount"] }), () => {
  test("only in the container: the image's copy runs instead, and the log reports it", async () => {
    installer = node.startMounted({}, "noexec");
    await installer.says("ends in our stanza");
    expect(installer.log).toContain("is mounted noexec in this container");
    expect([node.isChained("10-k.conflist"), node.answers()]).toEqual([true, true]);
  });
});

suite("a plugin directory without space", missing({ root: true, programs: ["mount", "umount"] }), () => {
  test("keeps the plugin and the chain that it has, and nothing half-written", async () => {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", node.binDir]);
    try {
      node.installFormer();
      const before = binaries(node.content());
      script(`${SMALL_PLUGIN}#${"x".repeat(100_000)}`);
      installer = node.start({ HEALTH_PORT: String(PORT), UNINSTALL_ON_STOP: "never" });
      await installer.says("error: ENOSPC");
      await installer.stop();
      expect(binaries(node.content())).toEqual(before);
      expect([node.isChained("10-k.conflist"), node.broken()]).toEqual([true, []]);
      expect(node.answers()).toBe(true);
    } finally {
      execFileSync("umount", ["--lazy", node.binDir]);
    }
  });
});

const disk = missing({ root: true, programs: ["mkfs.ext4", "mount", "umount", "fsfreeze"] });
suite("a slow disk", disk, () => {
  test("does not block /live, and the installer continues afterwards", async () => {
    const file = join(node.root, "disk");
    execFileSync("mkfs.ext4", ["-q", file, "4M"]);
    execFileSync("mount", ["-o", "loop", file, node.binDir]);
    writeFileSync(join(node.binDir, "bridge"), "");
    const freeze = (option: "-f" | "-u") => execFileSync("fsfreeze", [option, node.binDir]);
    try {
      freeze("-f");
      installer = node.start({ HEALTH_PORT: String(PORT) });
      await until("it to serve", async () => (await get("/live")).status === 200);
      for (let round = 0; round < 10; round += 1) {
        await sleep(50);
        expect(await get("/live")).toEqual({ status: 200, text: "live\n" });
        expect((await get("/ready")).status).toBe(503);
      }
      expect(installer.log).not.toContain("ends in our stanza");
      freeze("-u");
      await installer.says("ends in our stanza");
      expect(node.broken()).toEqual([]);
    } finally {
      await installer.stop("SIGKILL");
      execFileSync("umount", ["--lazy", node.binDir]);
    }
  });
});

test("an executable is copied with the mode that every user may run", async () => {
  chmodSync(image(), 0o700);
  installer = node.start();
  await installer.says("ends in our stanza");
  expect(statSync(join(node.binDir, "linkerd-cni")).mode & 0o777).toBe(0o755);
});
