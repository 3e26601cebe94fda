import { type ChildProcess, execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { IMAGE_NAME } from "../../build/image/image";
import { outputs, root as project } from "../../build/paths";
import { CURRENT_VERSION } from "../../cni/versions";
import { ApiStub, json } from "../support/api-server";
import { defaultStanza } from "../support/default-stanza";
import { missing, suite } from "../support/requirements";
import { differences, snapshot } from "../support/snapshot";
import { until } from "../support/until";
import { unpackImage } from "./archive";
import { Containerd } from "./containerd";

const run = promisify(execFile);

/** Containerd's defaults for a container, which the chart takes away. */
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

const foreign = missing({ programs: ["qemu-aarch64"] }) ?? built;

suite("the image for arm64, run by qemu", foreign, () => {
  let directory: string;
  let root: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "linkerd-cni-arm64-"));
    const images = await unpackImage(outputs.image, directory);
    root = images.find(({ architecture }) => architecture === "arm64")?.root ?? "";
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** Runs the executable of the image. */
  const emulate = async (env: Readonly<Record<string, string>>, ...args: string[]) =>
    run("qemu-aarch64", [join(root, "opt/cni/bin/linkerd-cni"), ...args], { env: { ...process.env, ...env } });

  test("its plugin answers VERSION", async () => {
    const { stdout } = await emulate({ CNI_COMMAND: "VERSION" });
    expect(JSON.parse(stdout)).toMatchObject({ cniVersion: CURRENT_VERSION });
  });

  test("its installer runs", async () => {
    const failed = emulate({ HEALTH_PORT: "no port" }, "install");
    await expect(failed).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining("HEALTH_PORT") });
  });
});

suite("the image in containerd", lacks, () => {
  let directory: string;
  let containerd: Containerd;
  let api: ApiStub;
  let reference: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "linkerd-cni-image-"));
    const { version } = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
    reference = `${IMAGE_NAME}:${version}`;
    containerd = new Containerd(join(directory, "containerd"));
    await containerd.start();
    api = await ApiStub.start(json(404, {}));
  });

  afterAll(async () => {
    // A container that did not start has nothing to end.
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
  });

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

  test("installs on a node directory and removes everything again, with the chart's capability and no writable root", async () => {
    const node = join(directory, "node");
    const [netDir, binDir, account] = [join(node, "net.d"), join(node, "bin"), join(directory, "account")];
    for (const path of [netDir, binDir, account]) await mkdir(path, { recursive: true });
    await writeFile(join(netDir, "10-cluster.conflist"), PRIMARY);
    for (const name of ["bridge", "portmap"]) await writeFile(join(binDir, name), "another plugin", { mode: 0o755 });
    await writeFile(join(account, "token"), "a-token");
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
    expect(await readdir(netDir)).not.toContain("ZZZ-linkerd-cni-kubeconfig");
    const { plugins } = JSON.parse(await readFile(join(netDir, "10-cluster.conflist"), "utf8"));
    expect(plugins.map(({ type }: { type: string }) => type)).toEqual(["bridge", "portmap", "linkerd-cni"]);

    await containerd.ctr("task", "kill", "--signal", "SIGTERM", "installer");
    expect({ code: await ended, log }).toMatchObject({ code: 0 });
    expect(differences(before, await snapshot(node))).toEqual([]);
  });
});
