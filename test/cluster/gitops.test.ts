/** Argo CD and Flux, the real ones, install both charts from a Git repository and keep them. */
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { CRD } from "../support/multus";
import { suite, which } from "../support/requirements";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { ArgoCd } from "./argocd";
import { FluxHelm, FluxKustomize } from "./flux";
import {
  type ChartTool,
  type GitOps,
  GitRepository,
  type Installation,
  LINKERD_CNI,
  LINKERD_MULTUS,
  MANIFESTS,
} from "./gitops";
import { linkerdChart } from "./linkerd-chart";
import { importNextImage } from "./next-image";
import { pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite, type TestCluster } from "./suite";

const flux = process.env["FLUX_PEER"];
const argocd = process.env["ARGOCD_PEER"];
const fluxMissing = flux === undefined ? "FLUX_PEER: a directory with Flux's controllers" : undefined;
const argocdMissing =
  argocd === undefined
    ? "ARGOCD_PEER: a directory with argocd"
    : ["redis-server", "git"].find((program) => which(program) === undefined);

const [installer, plugin] = [process.env["LINKERD_CNI_INSTALL_PEER"], process.env["LINKERD_CNI_PEER"]];
const linkerds = installer === undefined || plugin === undefined ? undefined : { installer, plugin };
/** The same installation, from linkerd's chart in the Git repository. */
const LINKERDS: Installation = { ...LINKERD_CNI, path: "linkerd/linkerd2-cni" };

const RECONCILIATIONS = 10;
/** Meshed pods that start during a change, at least. */
const PODS = 112;
const CHAIN = ["bridge", "portmap", "linkerd-cni"];
/** Those that the charts have objects of. */
const KINDS = [
  "clusterrole",
  "clusterrolebinding",
  "configmap",
  "daemonset",
  "deployment",
  "mutatingwebhookconfiguration",
  "networkpolicy",
  "poddisruptionbudget",
  "resourcequota",
  "role",
  "rolebinding",
  "secret",
  "service",
  "serviceaccount",
];

interface Stanza {
  readonly "proxy-uid"?: number;
  readonly "inbound-ports-to-ignore"?: readonly string[];
}

/** Options of a tool's tests. */
interface Case<Tool extends GitOps> {
  readonly make: (cluster: TestCluster, git: GitRepository) => Tool;
  /** Installations, in this order. */
  readonly installs: readonly Installation[];
  /** Tests before the first installation. */
  readonly before?: (tool: () => Tool) => void;
  /** More tests of the installations. */
  readonly installed?: (tool: () => Tool) => void;
}

/** Commits a next version, with another user of the proxy and one more object. */
async function release(cluster: TestCluster, git: GitRepository): Promise<void> {
  await git.commit("next release", async () => {
    const chart = LINKERD_CNI.path;
    await git.replace(join(chart, "Chart.yaml"), /^version: .*$/m, "version: 0.9.0");
    await git.replace(join(chart, "values.yaml"), /^proxyUID: .*$/m, "proxyUID: 2103");
    await git.replace(join(chart, "values.yaml"), /^(networkPolicy:\n(?: {2}.*\n|\n)*? {2}enabled:) .*$/m, "$1 true");
    const { name, namespace } = LINKERD_CNI;
    const render = [
      "template",
      name,
      join(git.path, chart),
      `--namespace=${namespace}`,
      "--no-hooks",
      "--kube-version=1.34.0",
    ];
    const manifest = join(git.path, MANIFESTS, "linkerd-cni.yaml");
    // Helm makes no namespace.
    const [namespaceObject = ""] = (await readFile(manifest, "utf8")).split(/^---$/m);
    await writeFile(manifest, `${namespaceObject}---\n${await cluster.helm(...render)}`);
  });
}

/** Has linkerd's installer come and go: it writes the node's list in its own format, and leaves it like that. */
async function formatAsLinkerd(cluster: TestCluster, chart: string): Promise<void> {
  await cluster.helm("install", "linkerd-cni", "-n", "linkerd-cni", "--create-namespace", chart);
  await cluster.rolledOut();
  // Its pod counts as ready before it has installed.
  await until("linkerd's plugin in the chain", async () => (await cluster.chain()).includes("linkerd-cni"));
  await cluster.uninstall();
  await cluster.kubectl.run("delete", "namespace", "linkerd-cni", "--timeout=180s");
}

const gitOps = (cluster: TestCluster) => {
  let git: GitRepository;
  let before: Record<string, string>;
  /** The plugin's executable in another image. */
  let next: string;

  beforeAll(async () => {
    git = await GitRepository.create();
    if (linkerds !== undefined) {
      const chart = await linkerdChart(cluster.machine, linkerds);
      await git.commit("linkerd's chart", () => cp(chart, join(git.path, LINKERDS.path), { recursive: true }));
      await formatAsLinkerd(cluster, chart);
    }
    before = await cluster.directories();
    await cluster.kubectl.apply(CRD);
    next = await importNextImage(cluster.machine, "next");
    await cluster.kubectl.start(pod("client"));
  });

  const stanza = async (): Promise<Stanza> => {
    const { plugins } = await cluster.configuration();
    return (plugins.at(-1) as { linkerd?: Stanza }).linkerd ?? {};
  };
  const policies = () => cluster.kubectl.run("get", "networkpolicy", "--namespace=linkerd-cni", "--output=name");

  /** Every object of the charts, and how often it was changed: by its generation, or what else tells it. */
  const changes = async (installs: readonly Installation[]): Promise<Readonly<Record<string, string>>> => {
    type Objects = {
      items: {
        kind: string;
        metadata: { name: string; namespace?: string; generation?: number; resourceVersion: string };
      }[];
    };
    const { items } = await cluster.kubectl.json<Objects>("get", KINDS.join(), "--all-namespaces");
    const names = installs.map(({ name }) => name);
    const ours = items.filter(({ metadata }) => names.some((name) => metadata.name.startsWith(name)));
    return Object.fromEntries(
      ours.map(({ kind, metadata: { namespace = "", name, generation, resourceVersion } }) => [
        `${kind} ${namespace}/${name}`,
        generation === undefined ? resourceVersion : `generation ${generation}`,
      ]),
    );
  };

  const scenario = <Tool extends GitOps>(
    name: string,
    lacks: string | undefined,
    { make, installs, before: first, installed }: Case<Tool>,
  ) =>
    suite(name, lacks, () => {
      let tool: Tool;
      beforeAll(async () => {
        tool = make(cluster, git);
        await tool.start();
      });
      afterAll(() => tool.stop());

      first?.(() => tool);

      test("it installs, and ten reconciliations find nothing to change", async () => {
        for (const what of installs) {
          await tool.install(what);
          await tool.settled(what);
        }
        await cluster.rolledOut();
        expect(await cluster.chain()).toEqual(CHAIN);
        const corrected = await Promise.all(installs.map((what) => tool.corrections(what)));
        const changed = await changes(installs);
        for (const what of installs) {
          for (let count = 0; count < RECONCILIATIONS; count++) await tool.reconcile(what);
          await tool.settled(what);
        }
        expect(await Promise.all(installs.map((what) => tool.corrections(what)))).toEqual(corrected);
        expect(await changes(installs)).toEqual(changed);
      });

      test("it detects manual changes, and reverts them", async () => {
        const corrected = await tool.corrections(LINKERD_CNI);
        const at = ["daemonset/linkerd-cni", "--namespace=linkerd-cni"];
        const read = () => cluster.kubectl.run("get", ...at, "--output=jsonpath={.spec.revisionHistoryLimit}");
        const wanted = await read();
        await cluster.kubectl.run("patch", ...at, "--type=merge", '--patch={"spec":{"revisionHistoryLimit":3}}');
        await tool.reconcile(LINKERD_CNI);
        await until("the change to be undone", async () => (await read()) === wanted);
        await tool.settled(LINKERD_CNI);
        expect(await tool.corrections(LINKERD_CNI)).not.toEqual(corrected);
      });

      installed?.(() => tool);

      test("a commit upgrades, and git revert goes back and prunes", async () => {
        await release(cluster, git);
        await tool.settled(LINKERD_CNI);
        await cluster.rolledOut();
        expect([(await stanza())["proxy-uid"], await policies()]).toEqual([
          2103,
          "networkpolicy.networking.k8s.io/linkerd-cni\n",
        ]);
        await git.revert();
        await tool.settled(LINKERD_CNI);
        await cluster.rolledOut();
        expect([(await stanza())["proxy-uid"], await policies()]).toEqual([2102, ""]);
      });

      test("it uninstalls, and every byte of the node is as before", async () => {
        for (const what of installs.toReversed()) await tool.uninstall(what);
        await cluster.installerGone();
        expect(differences(before, await cluster.directories())).toEqual([]);
        await until("all objects to be gone", async () => Object.keys(await changes(installs)).length === 0);
      });
    });

  /** Changes something while meshed pods start, and waits until enough have. Each must be redirected. */
  const whilePodsStart = async (what: string, change: () => Promise<void>) => {
    const stream = new PodStream(cluster.kubectl, "client");
    const enough = async () => {
      await stream.check();
      return stream.started >= PODS;
    };
    let during = 0;
    try {
      await change();
      during = stream.started;
      await until(`${PODS} pods`, enough, 240);
    } finally {
      await stream.stop();
    }
    const { started, notRedirected } = await stream.stop();
    process.stdout.write(`${what}: ${started} meshed pods, ${during} of them during the change\n`);
    expect(notRedirected).toEqual([]);
  };

  const streamTest = (tool: () => GitOps) =>
    test(`a commit with another image and its revert, while ${PODS} meshed pods start: none fails, all are redirected`, async () => {
      const present = await cluster.executables();
      const failures = await cluster.failures();
      await whilePodsStart("another image and its revert", async () => {
        await git.commit("another image", async () => {
          await git.replace(join(LINKERD_CNI.path, "Chart.yaml"), /^version: .*$/m, "version: 0.8.0");
          await git.replace(
            join(LINKERD_CNI.path, "values.yaml"),
            /^(image:\n(?: {2}.*\n|\n)*? {2}version:) .*$/m,
            "$1 next",
          );
          await git.replace(join(MANIFESTS, "linkerd-cni.yaml"), /^( +image: \S+):\S+$/m, "$1:next");
        });
        await tool().settled(LINKERD_CNI);
        await cluster.rolledOut();
        expect(await cluster.executables()).toEqual([next]);
        await git.revert();
        await tool().settled(LINKERD_CNI);
        await cluster.rolledOut();
        expect(await cluster.executables()).toEqual(present);
      });
      expect(await cluster.failures()).toEqual(failures);
    }, 480_000);

  /** Kinds and names of a chart's objects, with the example's values as far as these add objects. */
  const rendered = async ({ name, namespace, path }: Installation): Promise<readonly string[]> => {
    const options = [
      `--namespace=${namespace}`,
      "--no-hooks",
      "--kube-version=1.34.0",
      "--set=priorityClassName=system-node-critical",
    ];
    const text = await cluster.helm("template", name, join(git.path, path), ...options);
    type Rendered = { kind: string; metadata: { name: string } } | null;
    const objects = parseAllDocuments(text).map((document) => document.toJS() as Rendered);
    return objects.flatMap((object) => (object === null ? [] : [`${object.kind} ${object.metadata.name}`])).sort();
  };

  /** Changes the source of the tool's object, and waits until only its chart is there, on the node as in the cluster. */
  const move = async (tool: ChartTool, to: Installation, isThere: (executables: string[]) => boolean) => {
    await tool.install(to);
    await tool.settled(to);
    await cluster.rolledOut();
    // linkerd's installer leaves our drop-in behind, which passes pods on to linkerd's plugin.
    const chain = async () => (to === LINKERDS ? [...new Set(await cluster.chain())] : cluster.chain());
    const isChained = async () => isThere(await cluster.executables()) && (await chain()).length === CHAIN.length;
    await until(`the plugin of ${to.path} in the chain`, isChained);
    expect(await chain()).toEqual(CHAIN);
    const present = Object.keys(await changes([to])).map((key) => key.replace(/ .*\//, " "));
    expect(present.sort()).toEqual(await rendered(to));
  };

  const sourceTest = (tool: () => ChartTool) =>
    (linkerds === undefined ? test.skip : test)(
      `another source goes from linkerd's chart to ours and back, while ${PODS} meshed pods start each way: all are redirected (needs LINKERD_CNI_PEER, LINKERD_CNI_INSTALL_PEER)`,
      async () => {
        await move(tool(), LINKERDS, ([executable]) => executable !== undefined);
        const theirs = await cluster.executables();
        const areTheirs = (executables: string[]) => executables.join() === theirs.join();
        await whilePodsStart("from linkerd's chart to ours", () =>
          move(tool(), LINKERD_CNI, (executables) => executables.length === 1 && !areTheirs(executables)),
        );
        await whilePodsStart("from our chart to linkerd's", () => move(tool(), LINKERDS, areTheirs));
      },
      900_000,
    );

  const charts = [LINKERD_CNI, LINKERD_MULTUS];
  scenario("Flux, by HelmRelease", fluxMissing, {
    make: (cluster, git) => new FluxHelm(cluster, git, flux ?? ""),
    installs: charts,
    before: sourceTest,
    installed: streamTest,
  });
  scenario("Flux, by Kustomization of dist/manifests", fluxMissing, {
    make: (cluster, git) => new FluxKustomize(cluster, git, flux ?? ""),
    installs: [LINKERD_CNI],
    installed: streamTest,
  });
  for (const serverSide of [true, false]) {
    scenario(`Argo CD, ${serverSide ? "server-side" : "client-side"}`, argocdMissing, {
      make: (cluster, git) => new ArgoCd(cluster, git, argocd ?? "", serverSide),
      installs: charts,
      before: sourceTest,
      installed: streamTest,
    });
  }
};

// Ours chains by a drop-in there.
clusterSuite("both charts by GitOps", gitOps, "2");
