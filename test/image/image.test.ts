import { type ChildProcess, execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { imageTargets } from "../../build/image/glibc";
import { IMAGE_NAME } from "../../build/image/image";
import { outputs, root as project } from "../../build/paths";
import { hostRuntime, RUNTIME_ENVIRONMENT } from "../../build/runtime";
import { ApiServer } from "../../demo/api-server";
import { differences, snapshot } from "../../demo/snapshot";
import { defaultStanza } from "../../demo/stanza";
import { missing, suite } from "../support/requirements";
import { unpackImage } from "./archive";
import { Containerd } from "./containerd";

const run = promisify(execFile);

/** What containerd gives a container by default, and the chart takes away. */
const CAPABILITIES = [
  ..."CHOWN FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP".split(" "),
  ..."NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE".split(" "),
].map((name) => `CAP_${name}`);

const PRIMARY = `{
  "cniVersion": "0.4.0", "name": "cluster",
     "plugins": [ { "type": "bridge" } , {"type":"portmap","capabilities":{"portMappings":true}} ]
}
`;

const built = existsSync(outputs.image) ? undefined : "the built image: npm run build";
const lacks = missing({ root: true, programs: ["containerd", "ctr", "containerd-shim-runc-v2", "runc"] }) ?? built;

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(50)) if (await condition()) return;
  throw new Error(`waited 30 s for ${what}`);
}

const forArm64 = imageTargets().architectures.includes("arm64") ? undefined : "an image for arm64: npm run image";
const foreign = missing({ programs: ["qemu-aarch64"] }) ?? forArm64;

suite("the image for arm64, run by qemu", foreign ?? built, () => {
  let directory: string;
  let root: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "linkerd-cni-arm64-"));
    const images = await unpackImage(outputs.image, directory);
    root = images.find(({ architecture }) => architecture === "arm64")?.root ?? "";
  }, 60_000);
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** Runs a file of the image, with its loader and its libraries. */
  const emulate = async (env: Readonly<Record<string, string>>, path: string, ...args: string[]) =>
    run("qemu-aarch64", ["-L", root, join(root, path), ...args], { env: { ...process.env, ...env } });

  test("its plugin answers VERSION", async () => {
    const { stdout } = await emulate({ CNI_COMMAND: "VERSION" }, "opt/cni/bin/linkerd-cni");
    expect(JSON.parse(stdout)).toMatchObject({ cniVersion: "1.1.0" });
  }, 60_000);

  test("its runtime runs the installer, with the image's C library", async () => {
    const installer = join(root, "opt/linkerd-cni/installer.js");
    const failed = emulate({ ...RUNTIME_ENVIRONMENT, HEALTH_PORT: "no port" }, "opt/linkerd-cni/bun", installer);
    await expect(failed).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining("HEALTH_PORT") });
  }, 60_000);
});

describe("the image's runtime", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "linkerd-cni-runtime-"));
    const script = 'console.log([process.env.POISON, require("node:path").sep, process.env.CI].join())';
    await mkdir(join(directory, "opt"));
    await writeFile(join(directory, "opt", "script.js"), script);
    const poison = join(directory, "poison.js");
    await writeFile(poison, 'console.log("poison"); module.exports = { sep: "poison" };');
    const preload = `preload = [${JSON.stringify(poison)}]\n`;
    for (const name of ["bunfig.toml", ".bunfig.toml"]) await writeFile(join(directory, name), preload);
    await writeFile(join(directory, ".env"), "POISON=poison\n");
    const paths = { "node:path": [poison], path: [poison] };
    await writeFile(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions: { paths } }));
    await writeFile(join(directory, "package.json"), '{"imports":{"node:path":"./poison.js"}}');
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const script = (env: Readonly<Record<string, string>>) =>
    run(hostRuntime(), [join(directory, "opt", "script.js")], { cwd: directory, env: { HOME: directory, ...env } });

  test("takes nothing from files in its working directory or home", async () => {
    expect((await script(RUNTIME_ENVIRONMENT)).stdout).toBe(",/,\n");
  });

  test("would, without the image's environment: so the test above sees something", async () => {
    expect((await script({})).stdout).toBe("poison\npoison,/,\n");
  });
});

suite("the image in containerd", lacks, () => {
  let directory: string;
  let containerd: Containerd;
  let api: ApiServer;
  let reference: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "linkerd-cni-image-"));
    const { version } = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
    reference = `${IMAGE_NAME}:${version}`;
    containerd = new Containerd(join(directory, "containerd"));
    await containerd.start();
    api = await ApiServer.start(new Map(), "a-token");
  }, 60_000);

  afterAll(async () => {
    // What did not start has nothing to end.
    api?.close();
    await containerd?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  test("is imported under its full name for every platform, and described to docker as containerd does", async () => {
    await containerd.ctr("image", "import", "--all-platforms", outputs.image);
    expect(await containerd.ctr("image", "list", "--quiet")).toBe(`${reference}\n`);
    expect(await containerd.ctr("image", "check")).toContain("complete");
    const exported = join(directory, "exported.tar");
    await containerd.ctr("image", "export", "--all-platforms", exported, reference);
    const tar = async (...args: string[]) => (await run("tar", args)).stdout.trim();
    const blobs = async (path: string) => (await tar("-tf", path)).match(/^blobs\/sha256\/.+$/gm);
    expect(await blobs(exported)).toEqual(await blobs(outputs.image));
    expect(await tar("-xOf", outputs.image, "manifest.json")).toBe(await tar("-xOf", exported, "manifest.json"));
  }, 60_000);

  function startInstaller(stanza: string, netDir: string, binDir: string, account: string): ChildProcess {
    const bind = (source: string, destination: string, mode: string) =>
      `--mount=type=bind,src=${source},dst=${destination},options=rbind:${mode}`;
    const env = {
      DEST_CNI_NET_DIR: "/etc/cni/net.d",
      DEST_CNI_BIN_DIR: "/opt/cni/bin",
      CNI_NETWORK_CONFIG: stanza,
      KUBERNETES_SERVICE_HOST: "127.0.0.1",
      KUBERNETES_SERVICE_PORT: String(api.port),
      UNINSTALL_ON_STOP: "always",
    };
    return containerd.runContainer(
      "--rm",
      "--read-only",
      "--net-host",
      ...CAPABILITIES.flatMap((name) => ["--cap-drop", name]),
      ...Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      bind(netDir, "/host/etc/cni/net.d", "rw"),
      bind(binDir, "/host/opt/cni/bin", "rw"),
      bind(account, "/var/run/secrets/kubernetes.io/serviceaccount", "ro"),
      reference,
      "installer",
    );
  }

  test("installs on a node directory and takes everything away again, with the chart's capability and no writable root", async () => {
    const node = join(directory, "node");
    const [netDir, binDir, account] = [join(node, "net.d"), join(node, "bin"), join(directory, "account")];
    for (const path of [netDir, binDir, account]) await mkdir(path, { recursive: true });
    await writeFile(join(netDir, "10-cluster.conflist"), PRIMARY);
    await writeFile(join(binDir, "bridge"), "another plugin", { mode: 0o755 });
    await writeFile(join(account, "token"), api.token);
    await writeFile(join(account, "ca.crt"), api.ca);
    await writeFile(join(account, "namespace"), "linkerd-cni");
    const before = await snapshot(node);

    const container = startInstaller(await defaultStanza(outputs.manifests, false), netDir, binDir, account);
    let log = "";
    for (const stream of [container.stdout, container.stderr]) stream?.on("data", (chunk) => (log += chunk));
    const ended = new Promise<number | null>((resolve) => container.once("exit", resolve));
    const chained = async () => (await readFile(join(netDir, "10-cluster.conflist"), "utf8")).includes("linkerd-cni");
    await until("the chain", chained).catch((error: Error) => {
      throw new Error(`${error.message}\n${log}`);
    });
    expect(await readdir(binDir)).toContain("linkerd-cni");
    expect((await stat(join(netDir, "ZZZ-linkerd-cni-kubeconfig"))).mode & 0o777).toBe(0o600);
    const { plugins } = JSON.parse(await readFile(join(netDir, "10-cluster.conflist"), "utf8"));
    expect(plugins.map(({ type }: { type: string }) => type)).toEqual(["bridge", "portmap", "linkerd-cni"]);

    await containerd.ctr("task", "kill", "--signal", "SIGTERM", "installer");
    expect({ code: await ended, log }).toMatchObject({ code: 0 });
    expect(differences(before, await snapshot(node))).toEqual([]);
  }, 60_000);
});
