import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../build/paths";
import type { Report } from "../../demo/report";
import { missing, suite, which } from "../support/requirements";

const run = promisify(execFile);

interface Where {
  readonly directory: string;
  /** Words before the command. */
  readonly as?: readonly string[];
  /** @default the node that runs this */
  readonly node?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

/** The command of `npm start`, without its installation step. */
async function demo({ directory, as = [], node = process.execPath, environment = {} }: Where): Promise<Report> {
  const tsx = join(directory, "node_modules", "tsx", "dist", "cli.mjs");
  const command = [...as, node, tsx, join(directory, "demo", "main.ts"), "--output", "json"];
  const where = { cwd: directory, env: { ...process.env, ...environment } };
  // A report of what went wrong is a failure too; it says more than the exit code.
  const { stdout } = await run(command[0] as string, command.slice(1), where).catch((error) => error);
  return JSON.parse(stdout) as Report;
}

/** Every connection that should be redirected was, and no other; the API server was asked for the meshed pod only. */
function expectWholeWay(report: Report, families: readonly number[]): void {
  const redirected = report.probes.filter(({ reached }) => reached.startsWith("proxy "));
  expect(
    redirected.map(({ from, to, port, family, reached }) => [from ?? "node", `${to}:${port}`, family, reached]),
  ).toEqual(
    families.flatMap((family) => [
      ["node", "cart:8080", family, "proxy inbound (4143)"],
      ["cart", "outside:80", family, "proxy outbound (4140)"],
    ]),
  );
  expect(report.probes.filter(({ passed }) => !passed)).toEqual([]);
  expect(report.differences).toEqual([]);
  const requests = Object.fromEntries(report.adds.map(({ pod, apiRequests }) => [pod, apiRequests]));
  expect(requests).toMatchObject({ cart: 1, legacy: 0 });
}

const families = existsSync("/proc/sys/net/ipv6") ? [4, 6] : [4];

suite("npm start as root", missing({ root: true, programs: ["unshare", "nsenter", "ip"] }), () => {
  test("redirects the right connections, leaves the others alone, and restores the node", async () => {
    const report = await demo({ directory: root });
    expectWholeWay(report, families);
    expect(report.probes).toHaveLength(11 * families.length);
    expect(report.probes.filter(({ uid }) => uid === 2102).map(({ reached }) => reached)).toEqual(
      families.map(() => "server:80"),
    );
  });

  test("shows the IPv4 half if the kernel has no IPv6", async () => {
    const directory = await mkdtemp(join(tmpdir(), "no-ipv6-"));
    try {
      const program = await realpath(which("ip") ?? "");
      await cp(program, join(directory, "ip"));
      const refusal = 'echo "ipv6: IPv6 is disabled on this device." >&2; exit 2';
      const script = `for word; do [ "$word" != -6 ] || { ${refusal}; }; done\nexec "${directory}/ip" "$@"\n`;
      await writeFile(join(directory, "script"), `#!/bin/sh\n${script}`, { mode: 0o755 });
      const as = ["unshare", "-m", "sh", "-c", `mount --bind "${directory}/script" "${program}"; exec "$@"`, "sh"];
      const report = await demo({ directory: root, as });
      expectWholeWay(report, [4]);
      expect(report.notShown).toContain("IPv6, which this kernel does not have");
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test("reports if namespaces cannot be created, and still installs and uninstalls", async () => {
    const directory = await mkdtemp(join(tmpdir(), "no-unshare-"));
    try {
      const report = await demo({ directory: root, environment: { PATH: directory } });
      expect(report).toMatchObject({
        adds: [],
        probes: [],
        differences: [],
        notShown: ["pods and their traffic: unshare is not installed: install util-linux"],
      });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

suite(
  "npm start as an ordinary user",
  missing({ root: true, programs: ["setpriv", "chown", "unshare", "mount"] }),
  () => {
    test("shows the same in a user namespace", async () => {
      const directory = await mkdtemp(join(tmpdir(), "ordinary-user-"));
      try {
        const sources = [
          "build",
          "cli",
          "cni",
          "controllers",
          "demo",
          "dist/manifests",
          "host",
          "installer",
          "kubernetes",
          "netlink",
          "nri",
          "plugin",
          "process",
          "system",
          "test/support",
          "package.json",
          "tsconfig.json",
        ];
        // Compiling the engine takes minutes, and nothing about it depends on the user.
        if (existsSync(join(root, ".cache/engine"))) sources.push(".cache/engine");
        for (const name of sources) await cp(join(root, name), join(directory, name), { recursive: true });
        const [node, modules] = [join(directory, "node"), join(directory, "node_modules")];
        await writeFile(node, "");
        await mkdir(modules);
        await run("chown", ["-R", "65534", directory]);
        // Bound rather than linked: the checkout may lie where only root may enter.
        const mounts = `mount --bind "${process.execPath}" "${node}" && mount --bind "${join(root, "node_modules")}" "${modules}"`;
        const user = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        const as = ["unshare", "--mount", "sh", "-c", `${mounts} && exec ${user} "$@"`, "sh"];
        const report = await demo({ directory, as, node, environment: { HOME: directory } });
        expectWholeWay(report, families);
        expect(report.probes).toHaveLength(10 * families.length);
        expect(report.notShown).toEqual([expect.stringContaining("the proxy's own user 2102")]);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });
  },
);
