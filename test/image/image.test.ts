import { type ChildProcess, execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { imageTargets } from "../../build/image/glibc";
import { buildImage, IMAGE_NAME, imageSpec, layOutImage } from "../../build/image/image";
import { OCI_NAMES } from "../../build/image/oci";
import { cache, outputs, root } from "../../build/paths";
import { RESULTS } from "../../build/results";
import { ApiServer } from "../../demo/api-server";
import { differences, snapshot } from "../../demo/snapshot";
import { defaultStanza } from "../../demo/stanza";
import { missing, suite } from "../support/requirements";
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

const libraries = imageTargets().lacks === undefined ? undefined : "the C library of every architecture";
const built = existsSync(outputs.image) ? undefined : "the built image: npm run build";
const lacks = missing({ root: true, programs: ["containerd", "ctr", "containerd-shim-runc-v2", "runc"] }) ?? built;

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(50)) if (await condition()) return;
  throw new Error(`waited 30 s for ${what}`);
}

interface Manifest {
  readonly digest: string;
  readonly platform: { readonly os: string; readonly architecture: string };
}

interface Layer {
  readonly files: readonly string[];
  /** `path -> target` */
  readonly links: readonly string[];
  /** `os/architecture` */
  readonly platform: string;
  /** Bytes that a node pulls, and bytes that they become. */
  readonly compressed: number;
  readonly uncompressed: number;
  /** Paths and modes in octal of those that someone could misuse. */
  readonly loose: readonly string[];
}

const sha256 = async (path: string) =>
  createHash("sha256")
    .update(await readFile(path))
    .digest("hex");

suite("the image's files", built, () => {
  let work: string;
  let layers: readonly Layer[];

  /** Every layer of the archive, by tar's own listing. */
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), "linkerd-cni-layers-"));
    await run("tar", ["-xf", outputs.image, "-C", work]);
    const blob = (digest: string) => join(work, "blobs", digest.replace(":", "/"));
    const json = async (path: string) => JSON.parse(await readFile(path, "utf8"));
    const [named] = (await json(join(work, "index.json"))).manifests;
    const { manifests } = await json(blob(named.digest));
    layers = await Promise.all(
      manifests.map(async ({ digest, platform }: Manifest) => {
        const [layer] = (await json(blob(digest))).layers;
        const { stdout } = await run("tar", ["-tvzf", blob(layer.digest)]);
        const lines = stdout.trim().split("\n");
        const count = `gzip --decompress --stdout ${blob(layer.digest)} | wc --bytes`;
        return {
          platform: `${platform.os}/${platform.architecture}`,
          compressed: (await stat(blob(layer.digest))).size,
          uncompressed: Number((await run("sh", ["-c", count])).stdout),
          files: lines.filter((line) => line.startsWith("-")).map((line) => line.split(" ").at(-1) as string),
          links: lines.filter((line) => line.startsWith("l")).map((line) => line.split(" ").slice(-3).join(" ")),
          loose: lines.filter((line) => /^-..[sS]|^-.....[sS]|^[-d].......w/.test(line) || !line.includes(" 0/0 ")),
        };
      }),
    );
  }, 60_000);
  afterAll(() => rm(work, { recursive: true, force: true }));

  test("are there for each architecture whose C library this machine has", () => {
    const platforms = imageTargets().architectures.map((architecture) => `linux/${OCI_NAMES[architecture]}`);
    expect(layers.map(({ platform }) => platform)).toEqual(platforms);
  });

  test("are the programs, what they are linked with, and their bill of materials; no shell, nothing else", () => {
    const scripts = ["controllers.js", "installer.js", "sbom.cdx.json"].map((name) => `opt/linkerd-cni/${name}`);
    const programs = ["opt/cni/bin/linkerd-cni", ...scripts];
    const library = /^opt\/linkerd-cni\/lib\/(ld-linux[-\w.]*|lib(c|m|dl|pthread)\.so\.\d)$/;
    const link = /^lib[-\w./]* -> \/opt\/linkerd-cni\/lib(\/ld-linux[-\w.]*)?$/;
    for (const { files, links } of layers) {
      expect(links).toEqual([expect.stringMatching(link), expect.stringMatching(link)]);
      expect(files.filter((path) => !library.test(path)).sort()).toEqual(programs);
      expect(files.filter((path) => library.test(path))).toHaveLength(5);
    }
  });

  test("belong to root, and none is setuid or writable for all", () => {
    expect(layers.map(({ loose }) => loose)).toEqual(layers.map(() => []));
  });

  test("are as large as bench/results.json says, within 5 %: a change of the size is a change of that file", async () => {
    const { image } = JSON.parse(await readFile(RESULTS, "utf8"));
    for (const { platform, compressed, uncompressed } of layers) {
      expect(Math.abs(compressed / 1e6 / image[platform].compressedMB - 1)).toBeLessThan(0.05);
      expect(Math.abs(uncompressed / 1e6 / image[platform].uncompressedMB - 1)).toBeLessThan(0.05);
    }
  });

  test("are the same, byte for byte, when they are built again", async () => {
    const before = await sha256(outputs.image);
    await buildImage();
    expect(await sha256(outputs.image)).toBe(before);
  }, 120_000);

  test("are run as the Containerfile says", async () => {
    const lines = (await readFile(join(root, "Containerfile"), "utf8")).split("\n");
    const after = (word: string) => lines.findLast((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? "";
    const { entrypoint, env } = await imageSpec();
    expect(JSON.parse(after("ENTRYPOINT"))).toEqual(entrypoint);
    expect(after("ENV").split(" ")).toEqual(env);
  });

  test("are those that the Containerfile copies", async () => {
    await layOutImage();
    const folder = join(outputs.image, "..", "rootfs");
    const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    const copied = files.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
    expect(layers.map(({ files: packed }) => [...packed].sort())).toContainEqual(copied);
  }, 60_000);
});

const foreign = missing({ programs: ["qemu-aarch64"] }) ?? libraries;

suite("the plugin for arm64, run by qemu", foreign ?? built, () => {
  test("answers VERSION", async () => {
    const plugin = join(cache, "image", "arm64", "linkerd-cni");
    const { stdout } = await run("qemu-aarch64", ["-L", "/usr/aarch64-linux-gnu", plugin], {
      env: { ...process.env, CNI_COMMAND: "VERSION" },
    });
    expect(JSON.parse(stdout)).toMatchObject({ cniVersion: "1.1.0" });
  }, 60_000);
});

suite("the image in containerd", lacks, () => {
  let directory: string;
  let containerd: Containerd;
  let api: ApiServer;
  let reference: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "linkerd-cni-image-"));
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    reference = `${IMAGE_NAME}:${version}`;
    containerd = new Containerd(join(directory, "containerd"));
    await containerd.start();
    api = await ApiServer.start(new Map(), "a-token");
  }, 60_000);

  afterAll(async () => {
    api.close();
    await containerd.stop();
    await rm(directory, { recursive: true, force: true });
  });

  test("is imported under its full name for this machine's platform", async () => {
    await containerd.ctr("image", "import", outputs.image);
    expect(await containerd.ctr("image", "list", "--quiet")).toBe(`${reference}\n`);
    expect(await containerd.ctr("image", "check")).toContain("complete");
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
