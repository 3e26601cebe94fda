import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { bundledPackages } from "../../build/bundle";
import { buildCli } from "../../build/cli";
import { root } from "../../build/paths";

describe("the built l5d-cni", () => {
  const folder = mkdtempSync(join(tmpdir(), "cli-"));
  const path = join(folder, "l5d-cni");

  beforeAll(() => buildCli(path));
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

  test("reports the problem, prints nothing else, and fails", () => {
    const { status, stdout, stderr } = run(["install-cni", "--proxy-uid", "root"]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain('proxyUID: "root" is not of type number');
  });

  test("exits quietly if its output is closed, as by head", () => {
    const script = `{ sleep 0.2; "${path}" install-cni; echo "status $?" >&2; } | true`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["", "status 0\n"]);
  });

  test.each([
    ["install-cni", "> /dev/full", "l5d-cni: cannot write the output: ENOSPC: no space left on device, write\n"],
    ["explain", "2> /dev/full", ""],
    ["install-cni", "> /dev/full 2>&1", ""],
  ])("%s %s fails, and prints no source", (args, where, said) => {
    const { status, stdout, stderr } = spawnSync("bash", ["-c", `"${path}" ${args} ${where}`], { encoding: "utf8" });
    expect([status, stdout, stderr]).toEqual([1, "", said]);
  });

  test("ends in the licence of each package that it holds, which its bill of materials names", async () => {
    const bom = JSON.parse(readFileSync(`${path}.cdx.json`, "utf8")) as {
      metadata: { component: { name: string; type: string } };
      components: { name: string; version: string; licenses: { license: { id: string } }[] }[];
    };
    expect(bom.metadata.component).toMatchObject({ name: "l5d-cni", type: "application" });
    const held = await bundledPackages([join(root, "cli", "main.ts")]);
    expect(held.length).toBeGreaterThan(15);
    const script = readFileSync(path, "utf8");
    const different = new Set<string>();
    for (const folder of held) {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
      different.add(`${name} ${version}`);
      // Identifiers of SPDX, as CycloneDX demands.
      expect(["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"]).toContain(license);
      expect(bom.components).toContainEqual(
        expect.objectContaining({ name, version, licenses: [{ license: { id: license } }] }),
      );
      expect(script).toContain(`\n// ${name} ${version} (${license})\n`);
    }
    expect(bom.components).toHaveLength(different.size);
    expect(script).toContain("// Permission is hereby granted, free of charge");
  });

  test("is a plugin of kubectl under the name that kubectl looks for", () => {
    const link = join(folder, "kubectl-l5d_cni");
    symlinkSync(path, link);
    expect(spawnSync(link, ["--help"], { encoding: "utf8" }).stdout).toContain("Usage: kubectl l5d-cni ");
  });

  test("knows its version", () => {
    expect(run(["--version"]).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
