import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byName, cdk8s, cdk8sMissing, documents, type Rendered, root } from "./helm";

const peers = ["cdk8s", "cdk8s-plus-27", "constructs", "yaml", "zod"];
const compiler = {
  compilerOptions: {
    target: "es2022",
    module: "nodenext",
    strict: true,
    skipLibCheck: false,
    outDir: "made",
    rootDir: ".",
    types: ["node"],
    typeRoots: [join(root, "node_modules", "@types")],
  },
  include: ["*.ts", "*.mts"],
};

/** The app and the cdk8s.yaml that the README shows. */
const readme = readFileSync(join(root, "README.md"), "utf8");
const [app = "", config = ""] = ["ts", "yaml"].map(
  (language) => new RegExp(`### With cdk8s\\n.*?^\`\`\`${language}\\n(.*?)^\`\`\``, "ms").exec(readme)?.[1] ?? "",
);

const esm = `import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdMultus, version } from "linkerd-cni-cdk8s";
import { HelmChart } from "linkerd-cni-cdk8s/helm";
const app = new App();
new LinkerdCni(new Chart(app, "linkerd-cni"), "cni", { logLevel: "debug" });
new LinkerdMultus(new Chart(app, "linkerd-multus"), "multus", { webhook: { failurePolicy: "Ignore" } });
process.stdout.write(JSON.stringify({ version, chart: typeof HelmChart, text: app.synthYaml() }));
`;

const wrong = `import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdMultus } from "linkerd-cni-cdk8s";
new LinkerdCni(new Chart(new App(), "chart"), "cni", { logLevel: "loud" });
new LinkerdCni(new Chart(new App(), "chart"), "cni", { inboundPort: 1 });
new LinkerdMultus(new Chart(new App(), "chart"), "multus", { webhook: { failurePolicy: "Retry" } });
`;

describe("the packed npm package in an empty project", () => {
  let project: string;
  const npm = (cwd: string, ...args: readonly string[]) =>
    execFileSync("npm", args, { cwd, encoding: "utf8", stdio: "pipe" });
  const node = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
    if (status !== 0) throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`);
    return stdout;
  };
  const tsc = (...args: readonly string[]) =>
    node(join(root, "node_modules", "typescript", "bin", "tsc"), "--pretty", "false", ...args);

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "project-"));
    npm(root, "pack", "--pack-destination", project);
    const packed = readdirSync(project).find((name) => name.endsWith(".tgz"));
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "platform", private: true }));
    const folders = peers.map((name) => join(root, "node_modules", name));
    const quiet = ["--offline", "--no-audit", "--no-fund", "--no-save", "--install-links", "--ignore-scripts"];
    npm(project, "install", ...quiet, `./${packed}`, ...folders);
    for (const example of ["subclass.ts", "helm-chart.ts"])
      cpSync(join(root, "examples", example), join(project, example));
    writeFileSync(join(project, "esm.mts"), esm);
    writeFileSync(join(project, "main.ts"), app);
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify(compiler));
    tsc();
  }, 180_000);

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  const named = (manifests: readonly Rendered[], kind: string) => manifests.find((manifest) => manifest.kind === kind);

  test("is subclassed as the README shows, and synthesizes", () => {
    const manifests = documents(node(join("made", "subclass.js")));
    expect(manifests.map(({ metadata }) => metadata.name)).toContain("platform-cni");
    const { data } = named(manifests, "ConfigMap") as unknown as { data: Record<string, string> };
    expect(JSON.parse(data["cni_network_config"] ?? "")).toMatchObject({
      "strict-status": true,
      "example.com/audit": { enabled: true },
      "own-pods": { namespace: "platform-cni" },
    });
    expect(named(manifests, "DaemonSet")).toMatchObject({ spec: { template: { spec: { dnsPolicy: "Default" } } } });
  });

  const synthTest = cdk8s === undefined ? test.skip : test;

  synthTest(`is synthesized by cdk8s synth as the README shows${cdk8sMissing}`, () => {
    expect(config).toContain("app: npx tsx main.ts");
    // tsx is the project's own; npx would fetch it.
    const compiled = config.replace("npx tsx main.ts", `${process.execPath} made/main.js`);
    writeFileSync(join(project, "cdk8s.yaml"), compiled);
    execFileSync(cdk8s ?? "", ["synth", "--check-upgrade=false"], { cwd: project, stdio: "pipe" });
    const made = byName(documents(readFileSync(join(project, "dist", "linkerd-cni.k8s.yaml"), "utf8")));
    expect(made["DaemonSet/linkerd-cni"]).toMatchObject({ metadata: { namespace: "linkerd-cni" } });
  });

  test("is imported by an ES module", () => {
    const made = JSON.parse(node(join("made", "esm.mjs"))) as { chart: string; text: string };
    expect(made.chart).toBe("function");
    expect(made.text).toContain('"log_level": "debug"');
    expect(made.text).toContain("failurePolicy: Ignore");
  });

  test("makes a chart of one's own", () => {
    const files = JSON.parse(node(join("made", "helm-chart.js"))) as Record<string, string>;
    expect(files["templates/deployment.yaml"]).toContain("replicas: {{ .Values.replicas | default 2 | int }}");
  });

  test("does not compile with values that are none", () => {
    const folder = join(project, "wrong");
    mkdirSync(folder);
    writeFileSync(join(folder, "wrong.ts"), wrong);
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ extends: "../tsconfig.json", include: ["*.ts"] }));
    expect(() => tsc("--project", folder)).toThrow(/wrong\.ts\(3,[\s\S]*wrong\.ts\(4,[\s\S]*wrong\.ts\(5,/);
  });
});
