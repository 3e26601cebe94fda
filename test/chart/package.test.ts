import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { multusValues, values } from "../../constructs";
import { fieldsOf } from "../../helm/value";
import { byName, cdk8s, cdk8sMissing, documents, type Rendered, root } from "./helm";

const peers = ["cdk8s", "cdk8s-plus-27", "constructs", "yaml"];
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

/** The chart that the README of the Helm layer shows. */
const helmChart = (
  /^```ts\n(.*?)^```/ms.exec(readFileSync(join(root, "helm", "README.md"), "utf8"))?.[1] ?? ""
).replace('"cdk8s-helm-chart"', '"linkerd-cni-cdk8s/helm"');

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

/** Files of a project that `cdk8s init typescript-app` makes. */
const template = cdk8s === undefined ? "" : join(dirname(realpathSync(cdk8s)), "..", "templates", "typescript-app");

const inTemplate = `import { App, Chart, type ChartProps } from "cdk8s";
import type { Construct } from "constructs";
import { LinkerdCni, LinkerdMultus, type LinkerdCniProps } from "linkerd-cni-cdk8s";
import { HelmChart, release } from "linkerd-cni-cdk8s/helm";

export class MyChart extends Chart {
  constructor(scope: Construct, id: string, props: ChartProps & { readonly cni: LinkerdCniProps }) {
    super(scope, id, props);
    new LinkerdCni(this, "cni", props.cni);
  }
}

const app = new App();
new MyChart(app, "cni", { namespace: "linkerd-cni", cni: { logLevel: "debug", tolerations: [{ key: "mesh" }] } });
new LinkerdMultus(new Chart(app, "multus"), "multus", { replicaCount: 1 });
new LinkerdCni(new HelmChart(new App(), "chart"), "cni", { namespace: release.namespace });
app.synth();
`;

/** The compilers of test/tools/typescript, and the project's own. */
const compilers: Readonly<Record<string, string>> = {
  "5.4": join(root, ".cache", "typescript", "node_modules", "typescript-5.4"),
  "5.9": join(root, ".cache", "typescript", "node_modules", "typescript-5.9"),
  "7.0": join(root, "node_modules", "typescript"),
};

/** Prints the documentation of each prop by path, as the language service of TypeScript finds it. */
const hover = `const ts = require(process.argv[2] + "/lib/typescript.js");
const program = ts.createProgram(["esm.mts"], { module: 199, moduleResolution: 99, strict: true });
const checker = program.getTypeChecker();
const shown = {};
const walk = (type, path) => {
  for (const prop of checker.getPropertiesOfType(checker.getNonNullableType(type))) {
    const at = [...path, prop.name];
    const text = ts.displayPartsToString(prop.getDocumentationComment(checker));
    if (text !== "") shown[at.join(".")] = text;
    if (path.length < 3 && prop.getJsDocTags().every((tag) => tag.name !== "default")) walk(checker.getTypeOfSymbol(prop), at);
  }
};
ts.forEachChild(program.getSourceFile("esm.mts"), (node) => {
  if (!ts.isExpressionStatement(node) || !ts.isNewExpression(node.expression)) return;
  const signature = checker.getResolvedSignature(node.expression);
  const props = signature.getParameters()[2];
  walk(checker.getTypeOfSymbolAtLocation(props, node), []);
});
process.stdout.write(JSON.stringify(shown));
`;

/** Prints what an export of the package and each of its own members lack: documentation, as the same service finds it. */
const undocumented = `const ts = require(process.argv[2] + "/lib/typescript.js");
const program = ts.createProgram(["esm.mts"], { module: 199, moduleResolution: 99, strict: true });
const checker = program.getTypeChecker();
const [, imported] = program.getSourceFile("esm.mts").statements;
const isShown = (symbol) =>
  symbol.declarations.some(
    (at) =>
      at.getSourceFile().fileName.includes("/linkerd-cni-cdk8s/") &&
      !(ts.getCombinedModifierFlags(at) & ts.ModifierFlags.Private),
  );
const seen = [];
const isDescribed = (symbol, name) => {
  seen.push(name);
  return symbol.getDocumentationComment(checker).length > 0;
};
const missing = checker.getExportsOfModule(checker.getSymbolAtLocation(imported.moduleSpecifier)).flatMap((alias) => {
  const symbol = alias.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(alias) : alias;
  const hasMembers = symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface);
  const members = hasMembers ? checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)) : [];
  return [
    ...(isDescribed(symbol, alias.name) ? [] : [alias.name]),
    ...members
      .filter((member) => isShown(member) && !isDescribed(member, alias.name + "." + member.name))
      .map((member) => alias.name + "." + member.name),
  ];
});
process.stdout.write(JSON.stringify({ seen, missing }));
`;

const AS_NODE = {};
const AS_BUNDLERS = { module: "esnext", moduleResolution: "bundler" };
/** Which the newest compiler no longer knows. */
const WITHOUT_EXPORTS = { module: "commonjs", moduleResolution: "node10" };

/** How projects compile: as Node does CommonJS and ES modules at once. The newest compiler, strict, is the one above. */
const compilations = [
  { version: "5.4", resolution: "as Node does", strict: true, options: AS_NODE },
  { version: "5.4", resolution: "without exports", strict: false, options: WITHOUT_EXPORTS },
  { version: "5.9", resolution: "as Node does", strict: false, options: AS_NODE },
  { version: "5.9", resolution: "as bundlers do", strict: true, options: AS_BUNDLERS },
  { version: "5.9", resolution: "without exports", strict: true, options: WITHOUT_EXPORTS },
  { version: "7.0", resolution: "as Node does", strict: false, options: AS_NODE },
  { version: "7.0", resolution: "as bundlers do", strict: true, options: AS_BUNDLERS },
];

describe("the packed npm package in an empty project", () => {
  let project: string;
  const npm = (cwd: string, ...args: readonly string[]) =>
    execFileSync("npm", args, { cwd, encoding: "utf8", stdio: "pipe" });
  const node = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
    if (status !== 0) throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`);
    return stdout;
  };
  const tscOf = (version: string, ...args: readonly string[]) =>
    node(join(compilers[version] ?? "", "bin", "tsc"), "--pretty", "false", ...args);
  const tsc = (...args: readonly string[]) => tscOf("7.0", ...args);

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "project-"));
    npm(root, "pack", "--pack-destination", project);
    const packed = readdirSync(project).find((name) => name.endsWith(".tgz"));
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "platform", private: true }));
    const folders = peers.map((name) => join(root, "node_modules", name));
    const quiet = ["--offline", "--no-audit", "--no-fund", "--no-save", "--install-links", "--ignore-scripts"];
    npm(project, "install", ...quiet, `./${packed}`, ...folders);
    for (const example of ["subclass.ts", "additions.ts"])
      cpSync(join(root, "examples", example), join(project, example));
    writeFileSync(join(project, "helm-chart.ts"), helmChart);
    writeFileSync(join(project, "esm.mts"), esm);
    writeFileSync(join(project, "main.ts"), app);
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify(compiler));
    tsc();
  });

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  const named = (manifests: readonly Rendered[], kind: string) => manifests.find((manifest) => manifest.kind === kind);

  test.each([
    ["l5d-cni", "l5d-cni"],
    ["linkerd-cni", "linkerd cni"],
  ])("has the command %s", (name, shown) => {
    const run = (...args: readonly string[]) => npm(project, "exec", "--offline", "--no", "--", name, ...args);
    expect(run("check", "--help")).toContain(`Usage: ${shown} check`);
    expect(run("install-cni")).toContain("kind: DaemonSet");
  });

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

  test("is added to as the example shows, and synthesizes", () => {
    const manifests = documents(node(join("made", "additions.js")));
    const sets = manifests.filter(({ kind }) => kind === "DaemonSet");
    const containers = [{ name: "install-cni" }, { name: "audit" }];
    expect(sets).toMatchObject([
      { metadata: { annotations: { "example.com/owner": "platform" } }, spec: { template: { spec: { containers } } } },
      {
        spec: {
          template: { spec: { dnsPolicy: "Default", containers: [{ name: "install-cni" }, { name: "debug" }] } },
        },
      },
    ]);
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

  test("declares types of its own alone, and those of cdk8s", () => {
    const installed = join(project, "node_modules", "linkerd-cni-cdk8s");
    const { exports } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as {
      exports: Readonly<Record<string, { types?: string }>>;
    };
    const files = Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [posix.normalize(types)]));
    const others = new Set<string>();
    // Grows while it is walked.
    const seen = new Set(files);
    for (const file of seen) {
      const text = readFileSync(join(installed, file), "utf8");
      for (const [, name = ""] of text.matchAll(/(?:from |import\()"([^"]+)"/g)) {
        if (!name.startsWith(".")) others.add(name);
        else {
          const path = posix.join(posix.dirname(file), name);
          seen.add(existsSync(join(installed, `${path}.d.ts`)) ? `${path}.d.ts` : `${path}/index.d.ts`);
        }
      }
    }
    expect([...others].sort()).toEqual(["cdk8s", "cdk8s-plus-27", "constructs"]);
  });

  const missing = Object.values(compilers).every(existsSync)
    ? ""
    : " (no compilers: .ci/run installs test/tools/typescript)";

  const templateTest = missing === "" && cdk8s !== undefined ? test : test.skip;

  templateTest(
    `compiles and synthesizes in a project of cdk8s init${cdk8sMissing}${missing}`,
    () => {
      const folder = join(project, "template");
      mkdirSync(folder);
      for (const file of ["tsconfig.json", "cdk8s.yaml"]) cpSync(join(template, file), join(folder, file));
      writeFileSync(join(folder, "main.ts"), inTemplate);
      tscOf("5.9", "--project", folder);
      execFileSync(cdk8s ?? "", ["synth", "--check-upgrade=false", "--app", `${process.execPath} main.js`], {
        cwd: folder,
        stdio: "pipe",
      });
      const made = byName(documents(readFileSync(join(folder, "dist", "cni.k8s.yaml"), "utf8")));
      expect(made["DaemonSet/linkerd-cni"]).toMatchObject({ metadata: { namespace: "linkerd-cni" } });
    },
    180_000,
  );

  const compilerTest = missing === "" ? test : test.skip;

  compilerTest(
    `an editor shows the description and the default of each prop${missing}`,
    () => {
      writeFileSync(join(project, "hover.js"), hover);
      const shown = JSON.parse(node("hover.js", compilers["5.9"] ?? "")) as Readonly<Record<string, string>>;
      const all = [values, multusValues].flatMap((members) => fieldsOf(members));
      const expected = all.map(({ path, description }) => [path.join("."), `${description}.`]);
      expect(shown).toMatchObject(Object.fromEntries(expected));
    },
    60_000,
  );

  compilerTest(
    `an editor describes each export and member${missing}`,
    () => {
      writeFileSync(join(project, "undocumented.js"), undocumented);
      const shown = JSON.parse(node("undocumented.js", compilers["5.9"] ?? "")) as Record<string, readonly string[]>;
      const some = [
        "LinkerdCni.addInitContainer",
        "LinkerdCni.podSpec",
        "LinkerdNri.addEnv",
        "LinkerdCniProps.podMonitor",
      ];
      expect(shown["seen"]).toEqual(expect.arrayContaining(some));
      expect(shown["missing"]).toEqual([]);
    },
    60_000,
  );

  compilerTest.each(compilations)(
    `compiles with TypeScript $version, resolved $resolution, strict $strict${missing}`,
    ({ options, version, strict }) => {
      const tsconfig = {
        compilerOptions: { ...compiler.compilerOptions, ...options, strict, noEmit: true, rootDir: ".." },
        include: ["../*.ts", ...("module" in options ? [] : ["../*.mts"])],
      };
      const folder = mkdtempSync(join(project, "compiled-"));
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
      expect(tscOf(version, "--project", folder)).toBe("");
    },
    180_000,
  );
});
