import { lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiStub, json } from "../support/api-server";
import { freePort } from "../support/ports";
import { buildInstaller, SMALL_PLUGIN, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const DAEMON_SET = "/apis/apps/v1/namespaces/linkerd-cni/daemonsets/linkerd-cni";
const BRIDGE = "#!/bin/sh\n";

jest.setTimeout(60_000);

let api: ApiStub;
let node: TestNode;
beforeAll(buildInstaller);
beforeEach(async () => {
  api = await ApiStub.start(json(404, {}));
  node = new TestNode({ "10-k.conflist": LIST });
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  writeFileSync(join(node.binDir, "bridge"), BRIDGE, { mode: 0o755 });
});
afterEach(() => {
  api.close();
  node.delete();
});

interface Directories {
  readonly netDir: string;
  readonly binDir: string;
}

/** Lets the API server show a DaemonSet whose next pods mount these directories. */
function rollOut({ netDir, binDir }: Directories): void {
  const volumes = [
    { name: "cni-bin-dir", hostPath: { path: `${binDir}/` } },
    { name: "cni-net-dir", hostPath: { path: netDir } },
    { name: "linkerd-tmp-dir", emptyDir: {} },
  ];
  const daemonSet = { metadata: { name: "linkerd-cni" }, spec: { template: { spec: { volumes } } } };
  const answers: Readonly<Record<string, object>> = {
    [DAEMON_SET]: daemonSet,
    "/api/v1/namespaces/linkerd-cni/pods/linkerd-cni-x7k2p": {
      metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" },
    },
  };
  api.answer = (request, response) => {
    const object = answers[request.url ?? ""];
    (object === undefined ? json(404, {}) : json(200, object))(request, response);
  };
}

function start({ netDir, binDir }: Directories, more: Readonly<Record<string, string>> = {}) {
  return node.start({
    UNINSTALL_ON_STOP: "auto",
    KUBERNETES_SERVICE_PORT: String(api.port),
    POD_NAMESPACE: "linkerd-cni",
    POD_NAME: "linkerd-cni-x7k2p",
    DEST_CNI_NET_DIR: netDir,
    DEST_CNI_BIN_DIR: binDir,
    ...more,
  });
}

/** Another directory of the node, with these executables and configurations in it. */
function another(name: string, files: Readonly<Record<string, string>>): string {
  const directory = join(node.root, name);
  mkdirSync(directory);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text, { mode: 0o755 });
  return directory;
}

const chainOf = (directory: string): string => readFileSync(join(directory, "10-k.conflist"), "utf8");

describe("another destCNINetDir", () => {
  test.each([
    ["the new pod starts before the old one stops", true],
    ["the old pod stops first", false],
  ])("leaves no stanza in the old directory: %s", async (_, surge) => {
    const now = { netDir: node.netDir, binDir: node.binDir };
    const next = { ...now, netDir: another("net2.d", { "10-k.conflist": LIST }) };
    const before = node.content();
    const old = start(now);
    await old.says("ends in our stanza");
    rollOut(next);
    if (!surge) expect(await old.stop()).toBe(0);
    const successor = start(next);
    await successor.says("ends in our stanza");
    if (surge) expect(await old.stop()).toBe(0);

    expect(old.log).toContain(`use ${next.netDir} instead of ${now.netDir}`);
    const { "bin/linkerd-cni": plugin, ...others } = node.content();
    expect(others).toEqual(before);
    expect(plugin).toBe(SMALL_PLUGIN);
    expect(chainOf(next.netDir)).toContain(join(next.netDir, "ZZZ-linkerd-cni-kubeconfig"));
    expect(node.answers()).toBe(true);

    api.answer = json(404, {});
    expect(await successor.stop()).toBe(0);
    expect(node.content()).toEqual(before);
    expect(chainOf(next.netDir)).toBe(LIST);
  });
});

describe("another destCNIBinDir", () => {
  test("to which the node's plugins have moved: a runtime that searches the old one finds the new plugin there", async () => {
    const now = { netDir: node.netDir, binDir: node.binDir };
    const next = { ...now, binDir: another("bin2", { bridge: BRIDGE }) };
    const old = start(now);
    await old.says("ends in our stanza");
    writeFileSync(join(node.imageDir, "linkerd-cni"), `${SMALL_PLUGIN}# newer\n`);
    rollOut(next);
    const successor = start(next);
    await successor.says("ends in our stanza");
    expect(node.answers()).toBe(true);
    expect(await old.stop()).toBe(0);

    expect(node.isChained("10-k.conflist")).toBe(true);
    expect(node.answers()).toBe(true);
    expect(readlinkSync(join(now.binDir, "linkerd-cni"))).toBe(join(next.binDir, "linkerd-cni"));
    expect(readFileSync(join(now.binDir, "linkerd-cni"), "utf8")).toContain("# newer");

    const back = start(now);
    await back.says("ends in our stanza");
    expect(lstatSync(join(now.binDir, "linkerd-cni")).isSymbolicLink()).toBe(false);
    expect(await successor.stop("SIGKILL")).toBe("SIGKILL");
    expect(await back.stop()).toBe(0);
  });

  test("that is another name of the old one: the plugin stays, and is no link to itself", async () => {
    const now = { netDir: node.netDir, binDir: node.binDir };
    const next = { ...now, binDir: join(node.root, "current") };
    symlinkSync(now.binDir, next.binDir);
    const old = start(now);
    await old.says("ends in our stanza");
    rollOut(next);
    const successor = start(next);
    await successor.says("ends in our stanza");
    await old.says("has installed since");
    expect(await old.stop()).toBe(0);
    expect(old.log).toContain(`use ${next.binDir} instead of ${now.binDir}`);
    expect(lstatSync(join(now.binDir, "linkerd-cni")).isFile()).toBe(true);
    expect(node.answers()).toBe(true);
    expect(await successor.stop("SIGKILL")).toBe("SIGKILL");
  });

  test("that the runtime does not seem to search is refused: /ready is 503, and the old plugin stays", async () => {
    const now = { netDir: node.netDir, binDir: node.binDir };
    const next = { ...now, binDir: another("bin2", {}) };
    const old = start(now);
    await old.says("ends in our stanza");
    rollOut(next);
    const port = await freePort();
    const sentence = `destCNIBinDir was changed from ${now.binDir} to ${next.binDir}, which holds none of the other plugins`;
    for (const _ of ["a first pod", "the next one"]) {
      const successor = start(next, { HEALTH_PORT: String(port) });
      await successor.says(sentence);
      const answer = await fetch(`http://127.0.0.1:${port}/ready`);
      expect(answer.status).toBe(503);
      expect(await answer.text()).toContain(sentence);
      expect(node.isChained("10-k.conflist")).toBe(true);
      expect(node.answers()).toBe(true);
      expect(await successor.stop("SIGKILL")).toBe("SIGKILL");
    }
    expect(await old.stop()).toBe(0);
    expect(old.log).toContain(`use ${next.binDir} instead of ${now.binDir}`);
    expect(node.isChained("10-k.conflist")).toBe(true);
    expect(node.answers()).toBe(true);

    const back = start(now);
    await back.says("ends in our stanza");
    api.answer = json(404, {});
    expect(await back.stop()).toBe(0);
    expect(node.read("10-k.conflist")).toBe(LIST);
  });

  test("that was refused and is rolled back: the old pod goes on, and no pod starts unchained meanwhile", async () => {
    const now = { netDir: node.netDir, binDir: node.binDir };
    const next = { ...now, binDir: another("bin2", {}) };
    const before = node.content();
    const old = start(now);
    await old.says("ends in our stanza");
    rollOut(next);
    const successor = start(next);
    await successor.says("holds none of the other plugins");
    await old.says("has installed since");
    const { mtimeMs } = lstatSync(join(now.netDir, "10-k.conflist"));
    rollOut(now);
    expect(await successor.stop()).toBe(0);
    await old.says("has stopped: taking over again");
    expect(lstatSync(join(now.netDir, "10-k.conflist")).mtimeMs).toBe(mtimeMs);
    api.answer = json(404, {});
    expect(await old.stop()).toBe(0);
    expect(node.content()).toEqual(before);
  });

  test("where the old one was not the runtime's: its pod takes the chain out, so that the new one can start", async () => {
    const now = { netDir: node.netDir, binDir: another("wrong", {}) };
    const next = { ...now, binDir: node.binDir };
    const before = node.content();
    const port = await freePort();
    const old = start(now, { HEALTH_PORT: String(port) });
    await old.says("holds none of the other plugins");
    await old.says("ends in our stanza");
    let text = "";
    for (let tries = 0; !text.includes("holds none of the other plugins") && tries < 100; tries += 1) {
      text = await (await fetch(`http://127.0.0.1:${port}/ready`)).text();
      if (tries > 0) await sleep(50);
    }
    expect(text).toMatch(/^ready\nwarning: .*holds none of the other plugins/);
    rollOut(next);
    expect(await old.stop()).toBe(0);
    expect(node.content()).toEqual(before);

    const successor = start(next);
    await successor.says("ends in our stanza");
    expect(node.answers()).toBe(true);
    api.answer = json(404, {});
    expect(await successor.stop()).toBe(0);
    expect(node.content()).toEqual(before);
  });
});
