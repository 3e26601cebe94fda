/**
 * Runs the commands of every document: those for a cluster against a real API server, with kubectl, helm and l5d-cni.
 * Commands that would change an object run without effect, and commands that cannot run here are in a table with the
 * reason.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { App, Chart } from "cdk8s";
import { root } from "../../build/paths";
import { LinkerdNamespace } from "../../constructs";
import { findProgram } from "../chart/helm";
import { CliCluster, cliMissing, type Ended, shopPod } from "../support/cli";
import { CRD } from "../support/multus";
import type { ApiObject } from "../support/real-api";
import { suite } from "../support/requirements";

const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).trim().split("\n");

interface Command {
  readonly page: string;
  readonly text: string;
}

/** The lines of a document's blocks of commands, without what follows a `#`. */
function commandsOf(page: string): readonly Command[] {
  const blocks = [...readFileSync(join(root, page), "utf8").matchAll(/^```sh\n(.*?)^```/gms)].map(
    ([, text = ""]) => text,
  );
  return blocks
    .flatMap((block) => block.replace(/\\\n\s*/g, "").split("\n"))
    .map((line) => ({ page, text: line.replace(/(^|\s)#.*$/, "").trim() }))
    .filter(({ text }) => text !== "");
}

const commands = pages.flatMap(commandsOf);

/** Commands that are not run here, and why; of a page, or of all. */
const ELSEWHERE: readonly (readonly [page: RegExp, command: RegExp, why: string])[] = [
  [/./, /^npm (start|test)$/, "a phase of .ci/run"],
  [/./, /^linkerd (install|check|cni)\b/, "needs linkerd's own command: test/kernel/linkerd-cli.test.ts"],
  [/README/, /^skopeo copy /, "test/cluster/readme.test.ts pushes to a registry"],
  [/README/, /^(kind load|k3d image import) /, "needs kind or k3d"],
  [/README/, /^npm install /, "test/chart/package.test.ts installs the packed packages beside these"],
  [
    /constructs\.md/,
    /^(npm install|npx cdk8s-cli synth)$/,
    "test/chart/cdk8s-cli.test.ts runs the version that it pins",
  ],
  [/cli\.md/, /^ln -s /, "test/support/cli.ts makes the same links"],
  [/gitops\.md/, /^apt-get /, "installs a package of Debian"],
  [/./, /^helm test /, "starts a pod: test/cluster/readme.test.ts"],
  [/./, /^kubectl rollout status /, "waits for pods: test/cluster/install.test.ts"],
  [/verify\.md/, /^[A-Z\d]+=|^(cosign|oras) |^chmod /, "needs what a release publishes: test/release/release.test.ts"],
  [/release\.md/, /^oras push /, "publishes to the project's registry"],
];

const reasonOf = ({ page, text }: Command) => ELSEWHERE.find(([of, command]) => of.test(page) && command.test(text));

/** Commands of the checkout, whose scripts, suites and files must exist. */
const LOCAL = /^(FLUX_PEER=\S+ ARGOCD_PEER=\S+ )?(npm run |npx jest |npx tsx |\.ci\/)/;

/** Names of scripts, suites and files in a command that do not exist in the checkout. */
function absent(text: string): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
  const { projects } = jest.requireActual<{ projects: readonly { displayName: string }[] }>("../../jest.config.js");
  const words = text.split(/\s+/);
  const after = (flag: string) => words.flatMap((word, index) => (word === flag ? (words[index + 1] ?? "") : []));
  const names = {
    script: text.includes("npm run") ? after("run").filter((name) => !(name in scripts)) : [],
    suite: after("--selectProjects").filter((name) => !projects.some(({ displayName }) => displayName === name)),
    file: words
      .filter((word) => /^(\.ci|test|cli|nri)\//.test(word))
      .filter((path) => !existsSync(join(root, path)) && !existsSync(join(root, `${path}.test.ts`))),
  };
  return Object.entries(names).flatMap(([kind, missing]) => missing.map((name) => `${kind} ${name}`));
}

test("there are commands, in marked blocks", () => {
  expect(commands.length).toBeGreaterThan(100);
  for (const page of pages) expect(readFileSync(join(root, page), "utf8")).not.toMatch(/^```(bash|console|shell)/m);
});

test.each(ELSEWHERE)("%s, %s is excused for a command that is there", (page, command) => {
  expect(commands.some((each) => page.test(each.page) && command.test(each.text))).toBe(true);
});

test("commands of the checkout name scripts, suites and files that it has", () => {
  const local = commands.filter(({ text }) => LOCAL.test(text));
  expect(local.length).toBeGreaterThan(15);
  expect(local.flatMap(({ page, text }) => absent(text).map((what) => `${page}: ${text}: no ${what}`))).toEqual([]);
});

/** Two commands that differ in this alone need the same of a cluster. */
const sameFor = (text: string) => text.replace(/ \| grep .*| > .*/, "").replace(/reason=\S+/, "reason");

/** Commands for a cluster, each kind once, with the first document that has it. */
const forCluster = [
  ...new Map(
    [...commands].reverse().flatMap((each) => {
      return LOCAL.test(each.text) || reasonOf(each) !== undefined ? [] : [[sameFor(each.text), each] as const];
    }),
  ).values(),
].reverse();

/** Placeholders and their values here; a chart of the registry is the checkout's. */
const MEANT: readonly (readonly [RegExp, string])[] = [
  [/PODNAME/g, "linkerd-cni-one"],
  [/NODE\b/g, "one"],
  [/\bNAMESPACE\b/g, "shop"],
  [/REVISION/g, "1"],
  [/\/CHAIN\b/g, "/chain"],
  [/linkerd-multus …/g, "linkerd-multus -n linkerd-multus dist/charts/linkerd-multus"],
  [/oci:\/\/\S+\/(linkerd[\w-]+)(@\S+| --version \S+)/g, "dist/charts/$1"],
  [
    /--set image\.name=\S+ --set image\.digest=\S+/g,
    `--set image.name=a/b --set image.digest=sha256:${"0".repeat(64)}`,
  ],
  [/^oc /g, "kubectl "],
  [/kubectl (create|label|annotate|apply|delete|rollout restart) /g, "kubectl $1 --dry-run=server "],
  [/rollout restart --dry-run=server/g, "rollout restart"],
  [/helm (install|upgrade|uninstall|rollback) /g, "helm $1 --dry-run "],
  [/helm (install|upgrade) --dry-run /g, "helm $1 --dry-run=server "],
  // A helm that is built without its release's flags takes Kubernetes for 1.20.
  [/helm template /g, "helm template --kube-version 1.34.0 "],
  // The version that the API server serves here.
  [/admissionPolicy=v1\b/g, "admissionPolicy=v1beta1"],
  [/--wait 2m/g, "--wait 1s"],
  // It would write into the working directory.
  [/^l5d-cni report$/g, "l5d-cni report -o - > /dev/null"],
];

/** How commands end for which an object is missing that the document supposes, or is there already. */
const SUPPOSED =
  /\((NotFound|AlreadyExists)\)|l5d-cni: no deploy web in namespace shop|no matches for kind "(Certificate|Issuer)" in version "cert-manager/;

/** Whether a command worked, or reported that its object does not exist. */
function isRight(text: string, { code, out, err }: Ended): boolean {
  if (code === 0) return true;
  if (/l5d-cni check/.test(text)) return out.includes("Status check results are");
  if (SUPPOSED.test(err)) return true;
  // Nothing to be found.
  return text.includes("| grep ") && (err === "" || err.startsWith("No resources found"));
}

const helm = findProgram("helm", process.env["HELM"]);
const lacks = cliMissing() ?? (helm === undefined ? "helm" : undefined);

suite("the documents' commands for a cluster", lacks, () => {
  let cluster!: CliCluster;

  beforeAll(async () => {
    cluster = await CliCluster.start();
    const chart = new Chart(new App(), "chart");
    const namespaces = ["linkerd-cni", "shop", "linkerd", "linkerd-multus"];
    for (const name of namespaces) new LinkerdNamespace(chart, name, { name });
    await cluster.api.create(...(chart.toJson() as ApiObject[]));
    await cluster.api.create(shopPod("cart-7d9f", {}, ["app"]) as ApiObject);
    await cluster.api.define(CRD);
  });
  afterAll(() => cluster?.close());

  /** Runs a line where the checkout is, with the helm that was found. */
  const run = (line: string) => cluster.shell(line, root, dirname(helm ?? ""));

  const runs = async (_: string, text: string) => {
    const meant = MEANT.reduce((line, [pattern, by]) => line.replace(pattern, by), text);
    const ended = await run(meant);
    expect({ meant, ...ended, right: isRight(text, ended) }).toMatchObject({ right: true });
  };

  const rows = (isOne: (text: string) => boolean) =>
    forCluster.filter(({ text }) => isOne(text)).map(({ page, text }) => [page, text] as const);

  test.each(rows((text) => !text.startsWith("helm ")))("%s: %s", runs);
  test.each(rows((text) => text.startsWith("helm install ")))("%s: %s", runs);

  test.each([
    ["linkerd-cni", "has the labels", false],
    ["default", "lacks them", true],
  ])("the chart's notes for namespace %s, which %s, say how to label it: %j", async (namespace, _, expected) => {
    const { out } = await run(`helm install notes -n ${namespace} --dry-run=server dist/charts/linkerd2-cni`);
    expect(out).toContain("rollout status daemonset/linkerd-cni");
    expect(out.includes(`kubectl label namespace ${namespace}`)).toBe(expected);
  });

  const karpenter = join(root, ".cache", "karpenter");

  (existsSync(karpenter) ? test : test.skip)("Karpenter's example is valid (needs its kinds: .ci/run)", async () => {
    await cluster.kubectl("create", "-f", karpenter);
    await cluster.kubectl("wait", "--for=condition=established", "--timeout=60s", "crd/nodepools.karpenter.sh");
    const apply = "kubectl apply --dry-run=server --validate=strict -f";
    expect(await run(`${apply} examples/karpenter-nodepool.yaml`)).toMatchObject({ code: 0, err: "" });
    const misspelt = await run(`sed s/startupTaints/startUpTaints/ examples/karpenter-nodepool.yaml | ${apply} -`);
    expect([misspelt.code, misspelt.err]).toEqual([1, expect.stringContaining("startUpTaints")]);
  });

  describe("and those for a release", () => {
    beforeAll(async () => {
      for (const chart of ["linkerd2-cni", "linkerd-multus"]) {
        const name = chart.replace("2", "");
        const { code, err } = await run(`helm install ${name} -n ${name} dist/charts/${chart}`);
        expect([code, err]).toEqual([0, ""]);
      }
    });
    test.each(rows((text) => /^helm (?!install )/.test(text)))("%s: %s", runs);
  });
});
