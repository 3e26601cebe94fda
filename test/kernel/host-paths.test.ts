/** Tests and the demonstration on a machine where the product runs: its directory in /run stays as it is. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../build/paths";
import { namespacesMissing } from "../support/netns";
import { suite, which } from "../support/requirements";

jest.setTimeout(600_000);

/** Runs a command where the plugin's directory is there. @returns how it ended, and how its files changed */
function besideProduct(command: string, env: NodeJS.ProcessEnv = process.env) {
  const files = "stat -c '%i %s %n' /run/linkerd-cni/*";
  const script = `mount -t tmpfs none /run && mkdir /run/linkerd-cni && touch /run/linkerd-cni/plugin.log /run/linkerd-cni/lookup.sock
    before=$(${files}); ${command} >&2; echo $?; [ "$(${files})" = "$before" ] || ${files}`;
  const unshare = which("unshare") ?? "unshare";
  const ran = spawnSync(unshare, ["--mount", "sh", "-c", script], { cwd: root, env, encoding: "utf8" });
  const [status, ...changed] = ran.stdout.trim().split("\n");
  return { status, changed, log: ran.stderr };
}

const missing = namespacesMissing() ?? (process.getuid?.() === 0 ? undefined : "root");

suite("beside the product", missing, () => {
  test("the plugin's calls leave a trace there", () => {
    const call = "CNI_COMMAND=DEL CNI_CONTAINERID=a CNI_IFNAME=eth0 CNI_PATH=/ dist/bin/linkerd-cni </dev/null; true";
    expect(besideProduct(call).changed).not.toEqual([]);
  });

  test.each(["plugin-executable", "programs"])("%s leaves none", (name) => {
    const { status, changed, log } = besideProduct(`npx jest test/unit/${name} --selectProjects unit`);
    expect({ status, changed, log }).toMatchObject({ status: "0", changed: [] });
  });

  test("the demonstration leaves none, with pods and without iproute2", () => {
    const path = mkdtempSync(join(tmpdir(), "path-"));
    try {
      const programs = ["node", "sh", "mount", "mkdir", "touch", "stat", "unshare", "nsenter"];
      for (const name of programs) symlinkSync(which(name) ?? name, join(path, name));
      const start = `"${process.execPath}" --import tsx demo/main.ts`;
      for (const env of [process.env, { ...process.env, PATH: path }]) {
        const { status, changed, log } = besideProduct(start, env);
        expect({ status, changed, log }).toMatchObject({ status: "0", changed: [] });
        if (env.PATH === path) expect(log).toContain("install iproute2");
      }
    } finally {
      rmSync(path, { recursive: true });
    }
  });
});
