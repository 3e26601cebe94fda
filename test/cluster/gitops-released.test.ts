/** Argo CD and Flux, the real ones, install the released chart as the examples with a registry have it. */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../constructs";
import { authority } from "../../system/certificates.testing";
import { registryConfig } from "../support/oci-registry";
import { suite, which } from "../support/requirements";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { NODE } from "./addresses";
import { ArgoCd } from "./argocd";
import { startDaemon } from "./cluster";
import { FluxOci, RELEASED } from "./flux";
import { example, GitRepository, LINKERD_CNI, type Values } from "./gitops";
import { paths } from "./paths";
import { clusterSuite, type TestCluster } from "./suite";

const [flux = "", argocd = ""] = [process.env["FLUX_PEER"], process.env["ARGOCD_PEER"]];
const fluxMissing = flux === "" ? "FLUX_PEER: a directory with Flux's controllers" : undefined;
const argocdMissing =
  argocd === ""
    ? "ARGOCD_PEER: a directory with argocd"
    : ["redis-server", "git", "docker-registry"].find((program) => which(program) === undefined);

/** Without a port: Argo CD takes an address with one for a repository of HTTP. */
const REGISTRY = NODE.address;
const NEXT = "9.9.9";

interface Tool {
  start(): Promise<void>;
  stop(): Promise<void>;
  install(): Promise<void>;
  /** Waits until a release is installed, and the tool counts it as healthy. */
  settled(release: string): Promise<void>;
  setValues(values: Values): Promise<void>;
  /** Takes another release. */
  release(release: string): Promise<void>;
  uninstall(): Promise<void>;
}

class ArgoCdOci implements Tool {
  private readonly argo: ArgoCd;

  constructor(
    private readonly cluster: TestCluster,
    git: GitRepository,
    ca: string,
  ) {
    this.argo = new ArgoCd(cluster, git, argocd, true, { SSL_CERT_FILE: ca });
  }

  start = () => this.argo.start();
  stop = () => this.argo.stop();

  async install(): Promise<void> {
    const [application] = await example("argo-application-oci.yaml");
    if (application === undefined) throw new Error("the example is empty");
    application.spec.source.repoURL = `${REGISTRY}/charts`;
    await this.cluster.kubectl.apply(application);
  }

  settled = (release: string) => this.argo.settledAt(LINKERD_CNI, release);
  setValues = (values: Values) => this.argo.setValues(LINKERD_CNI, values);
  release = (targetRevision: string) => this.argo.patch(LINKERD_CNI, { targetRevision });
  uninstall = () => this.argo.uninstall(LINKERD_CNI);
}

class FluxReleases implements Tool {
  private readonly flux: FluxOci;

  constructor(cluster: TestCluster, git: GitRepository) {
    this.flux = new FluxOci(cluster, git, flux);
  }

  start = () => this.flux.start();
  stop = () => this.flux.stop();
  install = () => this.flux.install();
  settled = () => this.flux.settled(LINKERD_CNI);
  setValues = (values: Values) => this.flux.setValues(LINKERD_CNI, values);
  release = (tag: string) => this.flux.release(LINKERD_CNI, tag);
  uninstall = () => this.flux.uninstall(LINKERD_CNI);
}

const released = (cluster: TestCluster) => {
  let git: GitRepository;
  let work: string;
  let before: Record<string, string>;

  /** Packs the chart, with its version or the next one's, and puts it where releases are. */
  async function pack(release: string, change: (values: string) => string): Promise<string> {
    const chart = join(work, release, "linkerd2-cni");
    await mkdir(join(work, release));
    await cp(join(git.path, LINKERD_CNI.path), chart, { recursive: true });
    const values = join(chart, "values.yaml");
    await writeFile(values, change(await readFile(values, "utf8")));
    await cluster.helm("package", chart, `--version=${release}`, `--destination=${RELEASED}`);
    return join(RELEASED, `linkerd2-cni-${release}.tgz`);
  }

  /** A registry with TLS on the node's address: Argo CD 2.14 speaks no HTTP to one. */
  async function startRegistry(): Promise<void> {
    const { cert, key } = authority("test registry", { names: [NODE.address] });
    const tls = { certificate: join(work, "ca.crt"), key: join(work, "tls.key") };
    await writeFile(tls.certificate, cert);
    await writeFile(tls.key, key);
    const config = join(work, "registry.json");
    await writeFile(config, registryConfig(`${REGISTRY}:443`, join(paths.state, "released-registry"), undefined, tls));
    await startDaemon(cluster.machine, {
      name: "docker-registry",
      command: ["docker-registry", "serve", config],
      ready: ["curl", "--fail", "--silent", "--cacert", tls.certificate, `https://${REGISTRY}/v2/`],
    });
  }

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), "released-"));
    await mkdir(RELEASED);
    git = await GitRepository.create();
    const charts = [
      await pack(version, (values) => values),
      await pack(NEXT, (values) => values.replace(/^proxyUID: .*$/m, "proxyUID: 2103")),
    ];
    if (argocdMissing === undefined) {
      await startRegistry();
      const target = [`oci://${REGISTRY}/charts`, `--ca-file=${join(work, "ca.crt")}`];
      for (const chart of charts) await cluster.helm("push", chart, ...target);
    }
    before = await cluster.directories();
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  interface Stanza {
    readonly "proxy-uid"?: number;
    readonly "inbound-ports-to-ignore"?: readonly string[];
  }
  const stanza = async (): Promise<Stanza> => {
    const { plugins } = await cluster.configuration();
    return (plugins.at(-1) as { linkerd?: Stanza }).linkerd ?? {};
  };

  const scenario = (name: string, lacks: string | undefined, make: () => Tool) =>
    suite(name, lacks, () => {
      let tool: Tool;
      beforeAll(async () => {
        tool = make();
        await tool.start();
      });
      afterAll(() => tool.stop());

      test("it installs the release and is healthy", async () => {
        await tool.install();
        await tool.settled(version);
        await cluster.rolledOut();
        expect((await stanza())["proxy-uid"]).toBe(2102);
      });

      test("a value in its object reaches the node", async () => {
        await tool.setValues({ ignoreInboundPorts: "25" });
        await tool.settled(version);
        await cluster.rolledOut();
        expect((await stanza())["inbound-ports-to-ignore"]).toContain("25");
      });

      test("another version upgrades, and the former goes back", async () => {
        for (const [release, uid] of [
          [NEXT, 2103],
          [version, 2102],
        ] as const) {
          await tool.release(release);
          await tool.settled(release);
          await cluster.rolledOut();
          expect((await stanza())["proxy-uid"]).toBe(uid);
        }
      });

      test("it uninstalls, and every byte of the node is as before", async () => {
        await tool.uninstall();
        await cluster.installerGone();
        await until("the node as before", async () => differences(before, await cluster.directories()).length === 0);
      });
    });

  scenario(
    "Argo CD, examples/argo-application-oci.yaml",
    argocdMissing,
    () => new ArgoCdOci(cluster, git, join(work, "ca.crt")),
  );
  scenario("Flux, examples/flux-ocirepository.yaml", fluxMissing, () => new FluxReleases(cluster, git));
};

clusterSuite("the released chart by GitOps", released, "2");
