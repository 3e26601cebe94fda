/** The npm package cdk8s-helm-chart, as others install it: its README's chart, and the charts of its example. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "../support/requirements";
import { byName, documents, helm, root, run, withValues } from "./helm";

const peers = ["cdk8s", "cdk8s-plus-27", "constructs", "yaml"];
const tsconfig = {
  compilerOptions: {
    target: "es2022",
    module: "nodenext",
    strict: true,
    outDir: "made",
    rootDir: ".",
    types: ["node"],
    typeRoots: [join(root, "node_modules", "@types")],
  },
  include: ["*.ts"],
};

/** Writes the manifests of the example's construct for given props without Helm. */
const plain = `import { App, Chart } from "cdk8s";
import { NodeReadinessController } from "./node-readiness";
const chart = new Chart(new App(), "plain");
new NodeReadinessController(chart, "controller", JSON.parse(process.argv[2] ?? ""));
process.stdout.write(JSON.stringify(chart.toJson()));
`;

const readme = /^```ts\n(.*?)^```/ms.exec(readFileSync(join(root, "helm", "README.md"), "utf8"))?.[1] ?? "";

suite("the package cdk8s-helm-chart in an empty project", helm === undefined ? "helm" : undefined, () => {
  let project: string;
  let chart: string;

  const node = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
    if (status !== 0) throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`);
    return stdout;
  };

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "helm-package-"));
    const npm = (cwd: string, ...args: readonly string[]) => execFileSync("npm", args, { cwd, stdio: "pipe" });
    npm(join(root, "helm"), "pack", "--pack-destination", project);
    const packed = readdirSync(project).find((name) => name.endsWith(".tgz"));
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "example", private: true }));
    const folders = peers.map((name) => join(root, "node_modules", name));
    const quiet = ["--offline", "--no-audit", "--no-fund", "--no-save", "--install-links", "--ignore-scripts"];
    npm(project, "install", ...quiet, `./${packed}`, ...folders);
    cpSync(join(root, "examples", "node-readiness"), project, { recursive: true });
    writeFileSync(join(project, "plain.ts"), plain);
    writeFileSync(join(project, "readme.ts"), readme);
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify(tsconfig));
    node(join(root, "node_modules", "typescript", "bin", "tsc"), "--pretty", "false");
    node(join("made", "main.js"), "charts");
    chart = join(project, "charts", "node-readiness-controller");
  });

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  const template = (values: object, ...flags: readonly string[]) =>
    withValues(values, (path) => run("template", "nrc", chart, "--namespace", "default", "--values", path, ...flags));

  test("makes the chart that its README shows", () => {
    const files = JSON.parse(node(join("made", "readme.js"))) as Readonly<Record<string, string>>;
    expect(files["templates/deployment.yaml"]).toContain("replicas: {{ .Values.replicas | default 2 | int }}");
  });

  test("makes charts that helm's linter accepts", () => {
    expect(run("lint", "--strict", chart)).toContain("0 chart(s) failed");
  });

  test.each([
    {},
    { replicas: 3, metricsPort: 8443, extraArgs: ["--kube-api-qps=50"], owner: "ops" },
    { podAnnotations: { "example.com/a": "1" }, nodeSelector: { pool: "system" }, tolerations: [], resources: {} },
    { image: { repository: "registry/controller", tag: "1" } },
  ])("makes charts that helm renders to the constructs' manifests: %j", (values) => {
    const rendered = byName(documents(template(values)));
    expect(Object.keys(rendered)).toHaveLength(5);
    const plainly = JSON.parse(node(join("made", "plain.js"), JSON.stringify(values))) as never;
    expect(rendered).toEqual(byName(plainly));
  });
});
