/** README's commands from "Install it into a cluster" to "Uninstall", line by line in a fresh clone. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../build/paths";
import { version } from "../../constructs";
import { paths } from "./paths";
import { namespace, pod, podAnnotations, podSpec } from "./pods";
import { REGISTRY, REGISTRY_PROGRAMS, startRegistry } from "./registry";
import { clusterSuite, type TestCluster } from "./suite";

const run = promisify(execFile);

/** Folder of linkerd's own command line. */
const peer = process.env["LINKERD_PEER"];

const readme = readFileSync(join(root, "README.md"), "utf8");

const SECTIONS = ["Install it into a cluster", "Check it", "Upgrade", "Uninstall"];

/** The lines of each section's blocks, without those that load the image where there is no registry. */
const lines = SECTIONS.flatMap((title) => {
  const [section = ""] = new RegExp(`(?<=^##+ ${title}\n).*?(?=^##)`, "ms").exec(readme) ?? [];
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = ""]) => block.trim().split("\n"));
}).filter((line) => !/^(kind|k3d) /.test(line));

function followed(cluster: TestCluster): void {
  const clone = join(paths.state, "clone");
  let before: Record<string, string>;

  /** Starts the pods that the lines of "Check it" name. */
  async function startShop(): Promise<void> {
    const metadata = { name: "web", namespace: "shop" };
    const labels = { app: "web" };
    const template = {
      metadata: { labels, annotations: podAnnotations({ proxy: "sidecar" }) },
      spec: podSpec({ proxy: "sidecar", validator: true }),
    };
    await cluster.kubectl.apply(namespace("shop"));
    await cluster.kubectl.run("wait", "serviceaccount/default", "--namespace=shop", "--for=create", "--timeout=180s");
    await cluster.kubectl.apply(pod("cart-7d9f", { namespace: "shop", proxy: "sidecar", validator: true }), {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: { selector: { matchLabels: labels }, template },
    });
    await cluster.kubectl.ready("cart-7d9f", "shop");
    await cluster.kubectl.run("rollout", "status", "deployment/web", "--namespace=shop", "--timeout=180s");
  }

  /** What is true after a command, by how it begins. */
  const after: Readonly<Record<string, (output: string) => Promise<void>>> = {
    "skopeo copy": async () => {
      const image = `docker://${REGISTRY}/linkerd-cni:${version}`;
      const index = await cluster.machine.run(["skopeo", "inspect", "--raw", "--tls-verify=false", image]);
      const { manifests } = JSON.parse(index) as { manifests: { platform: { architecture: string } }[] };
      expect(manifests.map(({ platform }) => platform.architecture).sort()).toEqual(["amd64", "arm64"]);
    },
    "helm install": async (notes) => {
      expect(notes).toContain("kubectl -n linkerd-cni rollout status daemonset/linkerd-cni\n");
      expect(notes).toContain("helm -n linkerd-cni test linkerd-cni\n");
      expect(notes).not.toMatch(/\{\{|<no value>|\n\n\n|[ \t]\n|kubectl label/);
      await cluster.rolledOut();
      const log = await readFile(join(paths.logs, "docker-registry"), "utf8");
      expect(log).toMatch(/"(?:HEAD|GET) \/v2\/linkerd-cni\/manifests\/\S+ HTTP\/1\.1" 200 .*containerd/);
      await startShop();
    },
    "l5d-cni check --pre": async (output) => expect(output).toContain("Status check results are √"),
    "l5d-cni check --wait": async (output) => expect(output).toContain("Status check results are √"),
    "l5d-cni explain shop/": async (output) => expect(output).toContain("shop/cart-7d9f: redirected"),
    "l5d-cni explain deploy/": async (output) => expect(output).toMatch(/shop\/web-\S+: redirected/),
    "l5d-cni report": async () => {
      expect(await readdir(clone)).toContainEqual(expect.stringMatching(/^linkerd-cni-report-.*\.tar\.gz$/));
    },
    "helm upgrade": () => cluster.rolledOut(),
    "helm uninstall": async () => {
      await cluster.installerGone();
      expect(await cluster.directories()).toEqual(before);
    },
  };

  beforeAll(async () => {
    before = await cluster.directories();
    await run("git", ["clone", "--quiet", root, clone]);
    // What npm installs there, and compilers make of it, is the same as here.
    await mkdir(join(clone, ".cache"));
    for (const path of ["node_modules", ".cache/engine", ".cache/zig"]) {
      await symlink(join(root, path), join(clone, path));
    }
    // The registry has no certificate.
    const settings = join(paths.home, ".config", "containers");
    await mkdir(settings, { recursive: true });
    await writeFile(join(settings, "registries.conf"), `[[registry]]\nlocation = "${REGISTRY}"\ninsecure = true\n`);
    await startRegistry(cluster.machine);
  });

  /** Runs a line of README: npm on this machine, all others on the node. */
  async function type(line: string): Promise<string> {
    if (line.startsWith("npm ")) return (await run("sh", ["-c", line], { cwd: clone })).stdout;
    const programs = [join(clone, "dist", "bin"), peer ?? "", dirname(process.execPath)].join(delimiter);
    const script = `set -o pipefail; PATH="${programs}:$PATH"\n${line.replaceAll("REGISTRY", REGISTRY)}`;
    return cluster.machine.run(["bash", "-c", script], { directory: clone });
  }

  test("README has a command of each kind", () => {
    const missing = [...Object.keys(after), "npm run image", "helm test", "linkerd install"];
    expect(missing.filter((start) => !lines.some((line) => line.startsWith(start)))).toEqual([]);
  });

  for (const line of lines) {
    const excused = line.startsWith("linkerd ") && peer === undefined;
    (excused ? test.skip : test)(excused ? `${line} (needs LINKERD_PEER)` : line, async () => {
      const output = await type(line);
      for (const [start, check] of Object.entries(after)) if (line.startsWith(start)) await check(output);
    });
  }
}

clusterSuite("README in a fresh clone", followed, "2", [...REGISTRY_PROGRAMS, "git", "skopeo"]);
