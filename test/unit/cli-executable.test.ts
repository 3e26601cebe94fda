import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { bundledPackages } from "../../build/bundle";
import { buildCli } from "../../build/cli";
import { root } from "../../build/paths";
import { schemaErrors } from "../image/cyclonedx";

describe("the built l5d-cni", () => {
  const folder = mkdtempSync(join(tmpdir(), "cli-"));
  const path = join(folder, "l5d-cni");

  beforeAll(() => buildCli(path), 60_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  const run = (args: readonly string[], input = "") =>
    spawnSync(path, args, { cwd: folder, encoding: "utf8", input, env: { PATH: process.env["PATH"] } });

  test("is an executable script that prints manifests with the values of its standard input", () => {
    const { status, stdout, stderr } = run(["install-cni", "--values", "-"], "proxyUID: 7\n");
    expect([status, stderr]).toEqual([0, ""]);
    expect(parseAllDocuments(stdout).map((document) => document.get("kind"))).toEqual(
      expect.arrayContaining(["Namespace", "ServiceAccount", "ConfigMap", "DaemonSet"]),
    );
    expect(stdout).toContain('"proxy-uid": 7');
  });

  test("says what is wrong, prints nothing else, and fails", () => {
    const { status, stdout, stderr } = run(["install-cni", "--proxy-uid", "root"]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain('--proxy-uid: "root" is not of type number');
  });

  test("leaves quietly where nobody reads on, as before head", () => {
    const script = `{ sleep 0.2; "${path}" install-cni; echo "status $?" >&2; } | true`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["", "status 0\n"]);
  });

  test("ends in the licence of each package that it holds, which its bill of materials names", async () => {
    const bom = JSON.parse(readFileSync(`${path}.cdx.json`, "utf8")) as {
      metadata: { component: { name: string; type: string } };
      components: { name: string; version: string; licenses: { license: { id: string } }[] }[];
    };
    expect(await schemaErrors(bom)).toEqual([]);
    expect(bom.metadata.component).toMatchObject({ name: "l5d-cni", type: "application" });
    const held = await bundledPackages([join(root, "cli", "main.ts")]);
    expect(bom.components).toHaveLength(held.length);
    expect(held.length).toBeGreaterThan(20);
    const script = readFileSync(path, "utf8");
    for (const folder of held) {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
      expect(bom.components).toContainEqual(
        expect.objectContaining({ version, licenses: [{ license: { id: license } }] }),
      );
      expect(script).toContain(`\n// ${name} ${version} (${license})\n`);
    }
    expect(script).toContain("// Permission is hereby granted, free of charge");
  });

  test("is a plugin of kubectl under the names that kubectl looks for", () => {
    for (const name of ["kubectl-l5d_cni", "kubectl_complete-l5d_cni"]) symlinkSync(path, join(folder, name));
    const called = (name: string, ...args: readonly string[]) =>
      spawnSync(join(folder, name), args, { encoding: "utf8" }).stdout;
    expect(called("kubectl-l5d_cni", "--help")).toContain("Usage: kubectl l5d-cni ");
    expect(called("kubectl_complete-l5d_cni", "values", "nri.sock")).toBe("nri.socketDir\n:4\n");
  });

  test("bash completes commands, flags and values by it", () => {
    const complete = (line: string) => {
      const script = `PATH=${folder}:$PATH; source <(l5d-cni completion bash); COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _l5d_cni; echo "\${COMPREPLY[*]}"`;
      return spawnSync("bash", ["-c", script], { encoding: "utf8" }).stdout;
    };
    expect(complete("l5d-cni che")).toBe("check\n");
    expect(complete("l5d-cni check --wa")).toBe("--wait\n");
    expect(complete("l5d-cni install-cni --platform = k3")).toBe("k3s\n");
    expect(complete("l5d-cni install-cni --set nri.enabled = f")).toBe("false\n");
  });

  test("knows its version", () => {
    expect(run(["--version"]).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
