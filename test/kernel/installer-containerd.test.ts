/** Containerd's reaction to a first configuration that the installer reports as broken. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readConfig } from "../../cni/conflist/read";
import { missing, suite } from "../support/requirements";

const GOOD = '{"cniVersion":"1.0.0","name":"good","plugins":[{"type":"bridge"}]}';

/** Starts a containerd on a configuration directory; returns why it does not load a network, or that it does. */
async function load(fill: (netDir: string) => void): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "containerd-"));
  const [netDir, log] = [join(root, "net.d"), join(root, "log")];
  mkdirSync(netDir);
  writeFileSync(join(netDir, "50-good.conflist"), GOOD);
  fill(netDir);
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  writeFileSync(
    join(root, "config.toml"),
    [
      "version = 2",
      `root = "${root}/root"`,
      `state = "${root}/state"`,
      "[grpc]",
      `address = "${root}/containerd.sock"`,
      `[${cri}]`,
      'stream_server_port = "0"',
      `[${cri}.cni]`,
      `bin_dir = "${root}/bin"`,
      `conf_dir = "${netDir}"`,
    ].join("\n"),
  );
  writeFileSync(log, "");
  const child = spawn("sh", ["-c", `exec containerd -c "${root}/config.toml" >"${log}" 2>&1`]);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    // Only the start of its CRI service shows that it has read the directory.
    while (!readFileSync(log, "utf8").includes("Start streaming server")) {
      if (child.exitCode !== null) throw new Error(`containerd ended:\n${readFileSync(log, "utf8")}`);
      await sleep(20);
    }
    return /cni config load failed: [^\n]*/.exec(readFileSync(log, "utf8"))?.[0] ?? "loaded";
  } finally {
    child.kill("SIGTERM");
    await ended;
    rmSync(root, { recursive: true, force: true });
  }
}

suite("a first configuration, to containerd", missing({ root: true, programs: ["containerd"] }), () => {
  const broken: readonly (readonly [string, string])[] = [
    ["05-x.conflist", "{"],
    ["05-x.conflist", "[]"],
    ["05-x.conflist", '{"name":"k","plugins":[]}'],
    ["05-x.conflist", '{"name":"k"}'],
    ["05-x.conflist", '{"plugins":[{"type":"bridge"}]}'],
    ["05-x.conflist", '{"cniVersion":1,"name":"k","plugins":[{"type":"bridge"}]}'],
    ["05-x.conflist", '{"name":"k","plugins":[{}]}'],
    ["05-x.conf", '{"name":"k"}'],
    ["05-x.conf", '{"name":"k","plugins":[{"type":"bridge"}]}'],
    ["05-x.json", ""],
  ];

  test.each(broken)("%s of %j is broken, and nothing behind it is loaded", async (name, text) => {
    expect(await load((netDir) => writeFileSync(join(netDir, name), text))).toContain(name);
    const config = readConfig(name, Buffer.from(text));
    // Its libcni is older than 1.3, which also loads a list whose plugins are all drop-ins.
    expect(config.kind === "invalid" || config.refused?.["1.1"] !== undefined).toBe(true);
  });

  test("a link to nowhere is broken, and a directory is not looked at", async () => {
    expect(await load((netDir) => symlinkSync("/nowhere", join(netDir, "05-x.conf")))).toContain("05-x.conf");
    expect(await load((netDir) => mkdirSync(join(netDir, "05-x.conf")))).toBe("loaded");
  });
});
