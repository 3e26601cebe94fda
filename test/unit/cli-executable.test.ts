import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { bundledPackages } from "../../build/bundle";
import { buildCli } from "../../build/cli";
import { root } from "../../build/paths";
import { which } from "../support/requirements";

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
    expect(stderr).toContain('--proxy-uid: "root" is not of type number');
  });

  test("exits quietly if its output is closed, as by head", () => {
    const script = `{ sleep 0.2; "${path}" install-cni; echo "status $?" >&2; } | true`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["", "status 0\n"]);
  });

  test.each([
    ["values", "> /dev/full", "l5d-cni: cannot write the output: ENOSPC: no space left on device, write\n"],
    ["values nothing", "2> /dev/full", ""],
    ["values", "> /dev/full 2>&1", ""],
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

  /** Lines of an install-cni command up to the cursor, and what a shell makes of them. */
  const completions: readonly (readonly [string, string])[] = [
    ["--platform mic", "--platform microk8s "],
    ["--platform=mic", "--platform=microk8s "],
    ["--set a=1,nri.sock", "--set a=1,nri.socketDir="],
    ["-f l5d-cni.cdx", "-f l5d-cni.cdx.json "],
    ["--values=l5d-cni.cdx", "--values=l5d-cni.cdx.json "],
    ["--output nothing", "--output nothing"],
  ];

  const withZsh = which("zsh") === undefined ? test.skip : test;
  const withFish = which("fish") === undefined ? test.skip : test;

  // A terminal in which zsh is asked for its line after the tabulator key.
  const ZSH = String.raw`
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; source <(l5d-cni completion zsh); show() { print -r -- \"<\$BUFFER>\" }; zle -N show; bindkey '^X' show; print READY\$((1 + 1))"
zpty -r shell out '*READY2*'
for line in "$@"; do
  zpty -w -n shell $'\x15'"$line"$'\t\x18'
  zpty -r shell out '*<*>*'
  [[ $out =~ '<([^>]*)>' ]] && print -r -- $match[1]
done
zpty -d shell`;

  const begin = "l5d-cni install-cni ";
  const shell = (program: string, args: readonly string[]) => {
    const env = { PATH: `${folder}:${process.env["PATH"]}`, HOME: folder, TERM: "dumb" };
    return spawnSync(program, args, { cwd: folder, encoding: "utf8", env, timeout: 250_000 }).stdout;
  };

  withZsh("zsh completes them, too (needs zsh)", () => {
    const typed = completions.map(([line]) => begin + line);
    const made = completions.map(([, line]) => begin + line);
    expect(
      shell("zsh", ["-f", "-c", ZSH, "zsh", ...typed])
        .trimEnd()
        .split("\n"),
    ).toEqual(made);
  });

  withFish("fish also completes them (needs fish)", () => {
    const asked = completions.map(([line]) => `complete -C '${begin}${line}'`);
    // fish replaces the last word, and adds the space itself.
    const words = completions.flatMap(([, line]) =>
      line.includes("nothing") ? [] : (line.trim().split(" ").at(-1) ?? ""),
    );
    const script = `source (l5d-cni completion fish | psub); ${asked.join("; ")}`;
    expect(shell("fish", ["--no-config", "-c", script]).trimEnd().split("\n")).toEqual(words);
  });

  test("knows its version", () => {
    expect(run(["--version"]).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
