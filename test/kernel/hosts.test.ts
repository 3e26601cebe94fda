/**
 * The plugin on nodes that lack something: files, memory, /proc, a recent processor or kernel. Every verb must work, or
 * at least wherever linkerd's own plugin works (its executable: LINKERD_CNI_PEER).
 */
import { spawnSync } from "node:child_process";
import { copyFile, link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Architecture, hostArchitecture } from "../../build/architecture";
import { buildPlugin } from "../../build/programs";
import { config, environment, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing, type Ran } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite, which } from "../support/requirements";

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");
const peer = process.env["LINKERD_CNI_PEER"];
const needs = (program: string) => (which(program) === undefined ? program : undefined);

const podObject = (isMeshed: boolean) =>
  json(200, {
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      name: "cart-1",
      namespace: "shop",
      annotations: isMeshed ? { "linkerd.io/created-by": "linkerd/proxy-injector x" } : {},
    },
    spec: { containers: [{ name: "app" }, ...(isMeshed ? [{ name: "linkerd-proxy" }] : [])] },
  });

/** A program that changes something of its own process and then becomes another program. */
const perl = (script: string) => ["perl", "-e", `${script}; exec @ARGV or die "exec: $!"`];
const prctl = process.arch === "arm64" ? 167 : 157;

/** Installs a seccomp filter, written as a list of `[code, jumpIfTrue, jumpIfFalse, operand]`. */
function seccomp(...filter: readonly (readonly [number, number, number, number])[]): string[] {
  const program = filter.map((instruction) => `pack("SCCL", ${instruction.join(",")})`).join(" . ");
  return perl(`
    my $program = ${program};
    syscall(${prctl}, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall(${prctl}, 22, 2, pack("S x6 P", ${filter.length}, $program)) == 0 or die "seccomp: $!"`);
}

const [LOAD, AT_LEAST, EQUAL, RETURN] = [0x20, 0x35, 0x15, 0x06];
const ALLOW = [RETURN, 0, 0, 0x7fff0000] as const;
const fails = (errno: number) => [RETURN, 0, 0, 0x00050000 | errno] as const;
const [NUMBER, THIRD_ARGUMENT] = [0, 32];
const [EPERM, ENOSYS] = [1, 38];
const [MMAP, MPROTECT] = process.arch === "arm64" ? [222, 226] : [9, 10];
const AND = 0x54;
const WRITE_EXECUTE = 6;

/** A place where the plugin runs. */
interface Place {
  readonly lacks?: string | undefined;
  /** Command that runs the executable in that environment. @default none */
  readonly by?: readonly string[];
  /** A shell's script that runs `"$0"` there; the namespace is then bound at /pod of the directory $ROOT. */
  readonly script?: string;
  /** Whether it runs in the directory $ROOT as its root directory. @default false */
  readonly isChroot?: boolean;
  readonly architecture?: Architecture;
  /** Whether the kernel's netfilter can be reached, so that rules can be set. @default true */
  readonly hasNetfilter?: boolean;
}

const inChroot = (mounts: string): Place => ({
  isChroot: true,
  script: `mount --bind $POD $ROOT/pod && ${mounts} exec chroot $ROOT /linkerd-cni`,
});

const places: Readonly<Record<string, Place>> = {
  "an ordinary node": {},
  "a node that has no file but the plugin's": inChroot("mount -t proc proc $ROOT/proc &&"),
  "a working directory that was deleted": { script: 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$0"' },
  "a /run that is full": {
    script:
      'mount -t tmpfs -o size=4k none /run && mkdir /run/linkerd-cni && ! head -c 5k /dev/zero 2>/dev/null >/run/full; exec "$0"',
  },
  "memory that may not be writable and executable": {
    lacks: mdweMissing(),
    by: perl(`syscall(${prctl}, 65, 1, 0, 0, 0) == 0 or die "PR_SET_MDWE: $!"`),
  },
  "memory that may not become executable, by seccomp": {
    lacks: needs("perl"),
    by: seccomp(
      [LOAD, 0, 0, NUMBER],
      [EQUAL, 1, 0, MMAP],
      [EQUAL, 0, 4, MPROTECT],
      [LOAD, 0, 0, THIRD_ARGUMENT],
      [AND, 0, 0, WRITE_EXECUTE],
      [EQUAL, 0, 1, WRITE_EXECUTE],
      fails(EPERM),
      ALLOW,
    ),
  },
  "the system calls of Linux 4.18": {
    lacks: needs("perl"),
    by: seccomp([LOAD, 0, 0, NUMBER], [AT_LEAST, 0, 1, 424], fails(ENOSYS), ALLOW),
  },
  "1 GiB of address space": { by: ["prlimit", `--as=${2 ** 30}`] },
  "64 MB of address space": { by: ["prlimit", `--as=${64_000_000}`] },
  "a stack of 64 KiB": { by: ["prlimit", "--stack=65536"] },
  "16 open files": { by: ["prlimit", "--nofile=16"] },
  "files of no size": { by: ["prlimit", "--fsize=0"] },
  "no core dumps, and no locked memory": { by: ["prlimit", "--core=0", "--memlock=0"] },
  "an x86-64 processor of 2003": {
    lacks: needs("qemu-x86_64"),
    by: ["qemu-x86_64", "-cpu", "qemu64"],
    architecture: "x64",
    hasNetfilter: false,
  },
  "a Cortex-A53": {
    lacks: needs("qemu-aarch64"),
    by: ["qemu-aarch64", "-cpu", "cortex-a53"],
    architecture: "arm64",
    hasNetfilter: false,
  },
  "pages of 64 KB": {
    lacks: needs("qemu-aarch64"),
    by: ["qemu-aarch64", "-p", "65536"],
    architecture: "arm64",
    hasNetfilter: false,
  },
};

function mdweMissing(): string | undefined {
  const { status } = spawnSync("perl", ["-e", `exit syscall(${prctl}, 65, 1, 0, 0, 0) != 0`]);
  return status === 0 ? undefined : "perl, and Linux 6.3 for PR_SET_MDWE";
}

suite("the plugin on", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let pod: string;
  const executables = new Map<Architecture, string>();

  beforeAll(async () => {
    api = await ApiStub.start(podObject(true));
    plugin = await PluginNode.open(api);
    executables.set(hostArchitecture(), plugin.executable);
  });
  beforeEach(async () => {
    api.answer = podObject(true);
    api.requests.length = 0;
    pod = await plugin.node.pod();
  });
  afterEach(() => plugin.node.release(pod));
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  async function executableFor(architecture = hostArchitecture()): Promise<string> {
    const path = executables.get(architecture) ?? join(plugin.directory, `linkerd-cni-${architecture}`);
    if (!executables.has(architecture)) await buildPlugin(path, architecture);
    executables.set(architecture, path);
    return path;
  }

  /** A root directory that holds nothing but an executable, a kubeconfig and an installer's socket. */
  async function makeRoot(executable: string): Promise<string> {
    const root = join(plugin.directory, `root-${executable === peer ? "peer" : "ours"}`);
    await mkdir(join(root, "proc"), { recursive: true });
    await writeFile(join(root, "pod"), "");
    // Of a C library of the node's own, which others than ours may be made for.
    await mkdir(join(root, "etc"), { recursive: true });
    await writeFile(join(root, "etc", "ld.so.preload"), "/usr/lib/libsnoopy.so\n");
    await copyFile(executable, join(root, "linkerd-cni"));
    await copyFile(plugin.kubeconfig, join(root, "kubeconfig"));
    await mkdir(join(root, "run"), { recursive: true });
    await rm(join(root, "run", "lookup.sock"), { force: true });
    await link(join(plugin.runDir, "lookup.sock"), join(root, "run", "lookup.sock"));
    return root;
  }

  interface Call {
    readonly env?: Readonly<Record<string, string>>;
    readonly stdin?: object | string;
  }

  /** Calls an executable in a place; nothing but what a verb needs is in its environment. */
  async function callIn(place: Place, { env = {}, stdin = {} }: Call = {}, executable?: string): Promise<Ran> {
    const { by = [], script, isChroot = false, architecture } = place;
    const program = executable ?? (await executableFor(architecture));
    const netns = isChroot ? "/pod" : pod;
    const kubernetes = { kubeconfig: isChroot ? "/kubeconfig" : plugin.kubeconfig };
    const looksUp = { kubernetes, "run-dir": isChroot ? "/run" : plugin.runDir };
    const input = typeof stdin === "string" ? stdin : JSON.stringify({ ...config, ...looksUp, ...stdin });
    const variables = Object.entries({ ...environment, CNI_NETNS: netns, ...env });
    // As a runtime does it: what runs the plugin has an environment of its own.
    const clean = ["env", "-i", ...variables.filter(([, value]) => value !== "").map((pair) => pair.join("="))];
    const path = { PATH: process.env["PATH"] ?? "" };
    if (script === undefined) {
      const wrapped = [...by, program].map((word) => (word === by[0] ? (which(word) ?? word) : word));
      return plugin.node.run("/usr/bin/env", [...clean.slice(1), ...wrapped], { input, env: path });
    }
    const set = variables.map(([name, value]) => `export ${name}='${value}'`).join("\n");
    const root = isChroot ? await makeRoot(program) : "";
    const shell = `POD=${pod} ROOT=${root}\n${set}\n${script}`;
    return plugin.node.run("unshare", ["-m", "sh", "-c", shell, program], { input, env: path });
  }

  const rules = () => plugin.node.within(pod, "nft", ["list", "ruleset"]);
  const verb = (CNI_COMMAND: string) => ({ CNI_COMMAND });
  const newer = { cniVersion: "1.1.0" };
  const documentOf = ({ status, stdout }: Ran): unknown => [status, stdout === "" ? "" : JSON.parse(stdout)];

  for (const [name, place] of Object.entries(places)) {
    suite(name, place.lacks, () => {
      it("answers VERSION", async () => {
        const answer = await callIn(place, { env: verb("VERSION") });
        expect(documentOf(answer)).toEqual([0, expect.objectContaining({ supportedVersions: expect.anything() })]);
      });

      it("describes itself without a verb", async () => {
        const { status, stdout, stderr } = await callIn(place, { env: verb("") });
        expect([status, stdout, stderr]).toEqual([0, "", expect.stringContaining("CNI protocol versions supported")]);
      });

      it("reports the problem", async () => {
        const called = (call: Call) => callIn(place, call).then(documentOf);
        expect(await called({ env: { CNI_CONTAINERID: "" } })).toEqual([1, expect.objectContaining({ code: 4 })]);
        expect(await called({ stdin: "{" })).toEqual([1, expect.objectContaining({ code: 6 })]);
        expect(await called({ stdin: { linkerd: { "proxy-uid": "x" } } })).toEqual([
          1,
          expect.objectContaining({ code: 7, msg: expect.stringContaining("linkerd.proxy-uid") }),
        ]);
        expect(rules()).toBe("");
      });

      it("leaves a pod alone whose annotations say that it is not meshed", async () => {
        const runtimeConfig = { "io.kubernetes.cri.pod-annotations": { a: "b" } };
        expect(documentOf(await callIn(place, { stdin: { runtimeConfig } }))).toEqual([0, prevResult]);
        expect(api.requests).toEqual([]);
      });

      it("skips a pod that is not meshed according to the API server", async () => {
        api.answer = podObject(false);
        expect(documentOf(await callIn(place))).toEqual([0, prevResult]);
        expect(api.requests).toEqual(["/api/v1/namespaces/shop/pods/cart-1"]);
      });

      it("reports why the API server does not answer", async () => {
        api.answer = json(403, {});
        const msg = expect.stringContaining("answered 403");
        expect(documentOf(await callIn(place))).toEqual([1, expect.objectContaining({ code: 11, msg })]);
      });

      if (place.hasNetfilter !== false) {
        it("redirects a meshed pod, and finds that right", async () => {
          const stdin = { linkerd: { ipv6: true } };
          for (const _ of [1, 2]) expect(documentOf(await callIn(place, { stdin }))).toEqual([0, prevResult]);
          expect(rules().match(/redirect to/g)).toHaveLength(4);
          expect(documentOf(await callIn(place, { stdin, env: verb("CHECK") }))).toEqual([0, ""]);
        });
      }

      it("answers DEL, GC and STATUS", async () => {
        expect(documentOf(await callIn(place, { env: verb("DEL") }))).toEqual([0, ""]);
        const gc = { ...newer, "cni.dev/valid-attachments": [] };
        expect(documentOf(await callIn(place, { env: verb("GC"), stdin: gc }))).toEqual([0, ""]);
        expect(documentOf(await callIn(place, { env: verb("STATUS"), stdin: newer }))).toEqual([0, ""]);
      });
    });
  }

  const bare: Readonly<Record<string, Place>> = {
    "no /proc": inChroot(""),
    "no standard output": { script: 'exec "$0" >&-' },
    "a standard output that is full": { script: 'exec "$0" >/dev/full' },
    "no standard error": { script: 'exec "$0" 2>&-' },
    "a standard error that is full": { script: 'exec "$0" 2>/dev/full' },
    "no standard input": { script: 'exec "$0" <&-' },
    "a standard input that is a directory": { script: 'exec "$0" </' },
    "no standard stream": { script: 'exec "$0" <&- >&- 2>&-' },
    "a closed standard output": { script: 'set -m; { sleep 0; } | true; "$0" | true' },
    "a stack of 16 KiB": { by: ["prlimit", "--stack=16384"] },
    "8 MB of address space": { by: ["prlimit", "--as=8000000"] },
    "4 open files": { by: ["prlimit", "--nofile=4"] },
  };

  describe.each(Object.entries(bare))("%s", (_, place) => {
    const calls: readonly [string, Call][] = [
      ["VERSION", { env: verb("VERSION") }],
      ["ADD", { stdin: { linkerd: { "incoming-proxy-port": 4143, "outgoing-proxy-port": 4140, "proxy-uid": 2102 } } }],
      ["CHECK", { env: verb("CHECK") }],
      ["DEL", { env: verb("DEL") }],
    ];

    it.each(calls)("%s ends by itself and spoils no file", async (_, call) => {
      const before = await readFile(plugin.kubeconfig, "utf8");
      const { status, stdout } = await callIn(place, call);
      expect([0, 1]).toContain(status);
      if (stdout !== "") expect(JSON.parse(stdout)).toBeInstanceOf(Object);
      expect(await readFile(plugin.kubeconfig, "utf8")).toBe(before);
      expect(["", expect.stringContaining("chain")]).toContainEqual(rules());
    });

    // Linkerd's CHECK looks at nothing, and so always succeeds.
    const compared = calls.filter(([name]) => name !== "CHECK");
    (peer === undefined ? it.skip : it).each(compared)(
      "%s works where linkerd's does (LINKERD_CNI_PEER)",
      async (_, call) => {
        api.answer = podObject(false);
        const theirs = await callIn(place, call, peer);
        const ours = await callIn(place, call);
        if (theirs.status === 0) expect(ours).toMatchObject({ status: 0, stdout: expect.anything() });
      },
    );
  });
});
