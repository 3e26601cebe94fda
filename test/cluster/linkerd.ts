import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ociArchive } from "../../build/image/oci";
import { authority } from "../../system/certificates.testing";
import { NODE } from "./addresses";
import { importImage } from "./images";
import { paths } from "./paths";
import type { TestCluster } from "./suite";

const run = promisify(execFile);

/** Folder of Linkerd's programs. */
const peer = process.env["LINKERD_PEER"] ?? "";

/** Images of Linkerd's charts: each program by its path there. The first is the entrypoint. */
const IMAGES = {
  controller: {
    "linkerd-controller": "controller",
    "linkerd-policy-controller": "linkerd-policy-controller",
  },
  proxy: {
    "linkerd-proxy-identity": "usr/lib/linkerd/linkerd2-proxy-identity",
    "linkerd2-proxy": "usr/lib/linkerd/linkerd2-proxy",
    "linkerd-network-validator": "usr/lib/linkerd/linkerd2-network-validator",
  },
} as const;

/** What LINKERD_PEER lacks, in words. */
export function lacksLinkerd(): string | undefined {
  if (peer === "") return "Linkerd's programs: LINKERD_PEER";
  const programs = ["linkerd", ...Object.values(IMAGES).flatMap((image) => Object.keys(image))];
  const absent = programs.filter((program) => !existsSync(join(peer, program)));
  return absent.length === 0 ? undefined : `${absent.join(", ")} in LINKERD_PEER`;
}

/** The shared libraries that a program loads, and the loader. */
async function libraries(program: string): Promise<string[]> {
  const { stdout } = await run("ldd", [program]).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);
}

/** Linkerd in a cluster, installed and asked by its own command line. */
export class Linkerd {
  private constructor(
    private readonly cluster: TestCluster,
    private readonly version: string,
  ) {}

  /** Gives the node the images that the command line's charts name. */
  static async prepare(cluster: TestCluster): Promise<Linkerd> {
    const { stdout } = await run(join(peer, "linkerd"), ["version", "--client", "--short"]);
    const linkerd = new Linkerd(cluster, stdout.trim());
    for (const name of Object.keys(IMAGES) as (keyof typeof IMAGES)[]) await linkerd.importImage(name);
    return linkerd;
  }

  private async importImage(name: keyof typeof IMAGES): Promise<void> {
    const programs = Object.entries(IMAGES[name]).map(([program, path]) => [join(peer, program), path] as const);
    const shared = new Set((await Promise.all(programs.map(([program]) => libraries(program)))).flat());
    const wanted = [...programs, ...[...shared].map((path) => [path, path.slice(1)] as const)];
    const files = await Promise.all(
      wanted.map(async ([from, to]) => ({ name: to, mode: 0o755, content: await readFile(from) })),
    );
    const reference = `cr.l5d.io/linkerd/${name}:${this.version}`;
    const entrypoint = [`/${programs[0]?.[1]}`];
    const architecture = process.arch === "arm64" ? "arm64" : "amd64";
    const archive = join(paths.images, `linkerd-${name}.tar`);
    await mkdir(paths.images, { recursive: true });
    await writeFile(
      archive,
      await ociArchive({ reference, entrypoint, env: [], labels: {} }, [{ architecture, files }]),
    );
    await importImage(this.cluster.machine, archive);
  }

  /** Runs Linkerd's command line. @returns its standard output */
  run(args: readonly string[], input?: string): Promise<string> {
    const program = join(peer, "linkerd");
    return this.cluster.machine.run([program, ...args], input === undefined ? {} : { input });
  }

  /** Runs `linkerd check`, which fails if a check does. */
  check(...options: string[]): Promise<string> {
    return this.run(["check", `--expected-version=${this.version}`, "--wait=180s", ...options]);
  }

  /** Applies what `linkerd inject` or `linkerd uninject` makes of a Deployment, and waits for its rollout. */
  async change(verb: "inject" | "uninject", deployment: string, namespace: string): Promise<void> {
    const where = [`deployment/${deployment}`, `--namespace=${namespace}`];
    const manifest = await this.cluster.kubectl.run("get", ...where, "--output=yaml");
    await this.kubectl("apply", await this.run([verb, "-"], manifest));
    await this.cluster.kubectl.run("rollout", "status", ...where, "--timeout=180s");
  }

  async installDefinitions(): Promise<void> {
    await this.kubectl("apply", await this.run(["install", "--crds", "--set=installGatewayAPI=true"]));
    await this.cluster.kubectl.run("wait", "crd", "--all", "--for=condition=Established", "--timeout=180s");
  }

  /** Installs the control plane, with a trust anchor and an issuer of its own. */
  async install(): Promise<void> {
    const anchor = authority("root.linkerd.cluster.local", { toDay: 365 });
    const name = "identity.linkerd.cluster.local";
    const issuer = authority(name, { by: anchor, names: [name], toDay: 365 });
    const files = { "trust-anchors": anchor.cert, "issuer-certificate": issuer.cert, "issuer-key": issuer.key };
    const options = [
      "--linkerd-cni-enabled",
      "--set=disableHeartBeat=true",
      // Nothing listens there: a pod without a redirect fails at once.
      `--set=networkValidator.connectAddr=${NODE.address}:20001`,
      "--set=networkValidator.timeout=5s",
    ];
    for (const [what, content] of Object.entries(files)) {
      const path = join(paths.certificates, `linkerd-${what}`);
      await writeFile(path, content, { mode: 0o600 });
      options.push(`--identity-${what}-file=${path}`);
    }
    await this.kubectl("apply", await this.run(["install", ...options]));
  }

  async uninstall(): Promise<void> {
    await this.kubectl("delete", await this.run(["uninstall"]));
  }

  private async kubectl(verb: "apply" | "delete", manifest: string): Promise<void> {
    await this.cluster.machine.run(["kubectl", verb, "-f", "-"], { input: manifest });
  }

  /** Metrics of a pod's proxy. */
  metrics(pod: string, namespace: string): Promise<string> {
    return this.cluster.kubectl.run("get", "--raw", `/api/v1/namespaces/${namespace}/pods/${pod}:4191/proxy/metrics`);
  }
}
