import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const RENEWED = LIST.replace("bridge", "ptp");
const NAME = "10-k.conflist";

let node: TestNode;
let installer: Installer;
beforeAll(buildPrograms);
beforeEach(async () => {
  node = new TestNode({ [NAME]: LIST });
  installer = node.start();
  await installer.says("ends in our stanza");
});
afterEach(async () => {
  await installer.stop("SIGKILL");
  node.delete();
});

const path = (name: string) => join(node.netDir, name);
const chainedAnew = () => node.isChained(NAME) && node.read(NAME).includes("ptp");

test("the owner's writes to a link's target are chained", async () => {
  const real = join(node.root, "elsewhere");
  mkdirSync(real);
  writeFileSync(join(real, NAME), LIST);
  rmSync(path(NAME));
  symlinkSync(`../elsewhere/${NAME}`, path(NAME));
  await until("the chain", () => node.isChained(NAME));
  writeFileSync(join(real, NAME), RENEWED);
  await until("the new chain", chainedAnew);
});

test("a mounted stanza that changes reaches the chain", async () => {
  await installer.stop("SIGKILL");
  const file = join(node.root, "account", "stanza.json");
  const stanza = (level: string) =>
    writeFileSync(
      file,
      JSON.stringify({ type: "linkerd-cni", log_level: level, kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" } }),
    );
  stanza("info");
  installer = node.start({ CNI_NETWORK_CONFIG_FILE: file });
  await installer.says("ends in our stanza");
  stanza("debug");
  await until("the new stanza", () => node.read(NAME).includes('"debug"'));
  expect(node.isChained(NAME)).toBe(true);
});

suite("a directory that is mounted, as in a container", missing({ root: true, programs: ["unshare", "mount"] }), () => {
  test("and removed on the node ends the installer; the next one sees the new one", async () => {
    await installer.stop();
    installer = node.startMounted();
    await installer.says("ends in our stanza");
    // Again and again: the installer may be writing into it.
    rmSync(node.netDir, { recursive: true, maxRetries: 20, retryDelay: 5 });
    mkdirSync(node.netDir);
    node.write(NAME, RENEWED);
    expect(await installer.end()).toBe(1);
    expect(installer.log).toContain("net.d was moved or removed on the node");
    expect(node.read(NAME)).toBe(RENEWED);
    installer = node.startMounted();
    await until("the new chain", chainedAnew);
  });

  test.each([
    ["the folder of Multus' auxiliary chain", "vendor", "99-linkerd-cni.conf"],
    ["the directory of the plugin's log and the installer's socket", "run", "directories.json"],
    ["the directory of attachments", "cache", ""],
  ])("%s, too", async (_, name, file) => {
    const multus = {
      name: "multus",
      type: "multus-shim",
      auxiliaryCNIChainName: "vendor",
      clusterNetwork: "/at/10.conf",
    };
    await installer.stop();
    node.write("00-multus.conf", JSON.stringify(multus));
    installer = node.startMounted({ CHAINING: "auxiliary" });
    await installer.says("holds our stanza");
    const directory = join(node.root, name);
    renameSync(directory, `${directory}.old`);
    mkdirSync(directory);
    expect(await installer.end()).toBe(1);
    expect(installer.log).toContain(`${name} was moved or removed on the node`);
    installer = node.startMounted({ CHAINING: "auxiliary" });
    await until(file, () => existsSync(join(directory, file)));
  });
});

test("a directory that is not mounted itself may be replaced", async () => {
  renameSync(node.netDir, `${node.netDir}.old`);
  mkdirSync(node.netDir);
  node.write(NAME, RENEWED);
  await until("the new chain", chainedAnew);
  node.write(NAME, LIST);
  await until("the chain", () => node.isChained(NAME));
});
