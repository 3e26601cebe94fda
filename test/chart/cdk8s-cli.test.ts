import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { byName, cdk8s, cdk8sMissing, documents, helm, root, run } from "./helm";

const suite = cdk8s === undefined ? describe.skip : describe;

const read = (path: string) => documents(readFileSync(path, "utf8"));
const inDist = (name: string) => read(join(root, "dist", "manifests", `${name}.yaml`));

suite(`cdk8s synth in the project's root${cdk8sMissing}`, () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "synth-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const synth = (...args: readonly string[]) =>
    execFileSync(cdk8s ?? "", ["synth", "--check-upgrade=false", "--output", folder, ...args], {
      cwd: root,
      stdio: "pipe",
    });

  test("writes the manifests of each chart, and leaves dist alone", () => {
    const before = readdirSync(join(root, "dist"));
    synth();
    expect(readdirSync(folder).sort()).toEqual(["linkerd-cni.k8s.yaml", "linkerd-multus.k8s.yaml"]);
    for (const name of ["linkerd-cni", "linkerd-multus"]) {
      expect(byName(read(join(folder, `${name}.k8s.yaml`)))).toEqual(byName(inDist(name)));
    }
    expect(readdirSync(join(root, "dist"))).toEqual(before);
  });

  test("is its package's only command, which npx runs by the package's name, as docs/constructs.md shows", () => {
    expect(readFileSync(join(root, "docs", "constructs.md"), "utf8")).toContain("\nnpx cdk8s-cli synth\n");
    const about = join(dirname(realpathSync(cdk8s ?? "")), "..", "package.json");
    const { name, bin } = JSON.parse(readFileSync(about, "utf8")) as { name: string; bin: object };
    expect([name, ...Object.keys(bin)]).toEqual(["cdk8s-cli", "cdk8s"]);
  });

  const helmTest = helm === undefined ? test.skip : test;

  helmTest(
    "--format helm wraps them in a chart that helm renders, without values",
    () => {
      synth("--format", "helm", "--chart-version", "1.2.3");
      expect(parse(readFileSync(join(folder, "Chart.yaml"), "utf8"))).toMatchObject({ version: "1.2.3" });
      const rendered = byName(documents(run("template", "x", folder)));
      expect(rendered).toEqual(byName([...inDist("linkerd-cni"), ...inDist("linkerd-multus")]));
    },
    120_000,
  );
});
