import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildCli } from "../../build/cli";
import { outputs } from "../../build/paths";
import { unpacked } from "../../cli/report/archive.testing";
import { until } from "../support/until";
import { NODE } from "./addresses";
import { moveCniDirectories } from "./directories";
import { signalInstaller } from "./faults";
import { PROGRAMS_IMAGE } from "./images";
import { onDisk, paths } from "./paths";
import { namespace, pod } from "./pods";
import { BIN_DIR, clusterSuite, NET_DIR, type TestCluster } from "./suite";

interface Check {
  readonly description: string;
  readonly result: "success" | "warning" | "error";
  readonly error?: string;
  readonly remedy?: string;
}

/** A fault, its first failure, and the repair. */
interface Breakage {
  readonly name: string;
  readonly breaks: () => Promise<unknown>;
  readonly repair: () => Promise<unknown>;
  readonly problem: RegExp;
  readonly remedy: RegExp;
}

const nothing = async () => undefined;
/** A value that a user sets for the installer, and that must not be published. */
const VAULT_TOKEN = "hvs.of-the-vault";
const OTHER = { bin: "/var/lib/cni/bin", conf: "/var/lib/cni/net.d" };
const KEY = "linkerd.io/cni-not-ready";

/** The ways to break an installation. */
class Breaker {
  private template: { metadata: object; spec: { containers: { name: string; image: string }[] } } | undefined;

  constructor(private readonly cluster: TestCluster) {}

  /** Saves the state to restore. */
  async learn(): Promise<void> {
    type DaemonSet = { spec: { template: NonNullable<Breaker["template"]> } };
    const where = ["daemonset", "linkerd-cni", "--namespace=linkerd-cni"];
    this.template = (await this.cluster.kubectl.json<DaemonSet>("get", ...where)).spec.template;
  }

  private async putTemplate(value: object): Promise<void> {
    const patch = JSON.stringify([{ op: "replace", path: "/spec/template", value }]);
    const where = ["daemonset", "linkerd-cni", "--namespace=linkerd-cni", "--type=json"];
    await this.cluster.kubectl.run("patch", ...where, `--patch=${patch}`);
  }

  /** Changes the pods' specification. */
  async spec(change: object): Promise<void> {
    const { template } = this;
    if (template === undefined) throw new Error("nothing is known of the DaemonSet yet");
    await this.putTemplate({ ...template, spec: { ...template.spec, ...change } });
  }

  image(image: string): Promise<void> {
    const containers = this.template?.spec.containers.map((each) =>
      each.name === "install-cni" ? { ...each, image } : each,
    );
    return this.spec({ containers });
  }

  async restore(): Promise<void> {
    await this.putTemplate(this.template ?? {});
    await this.cluster.rolledOut();
  }
}

clusterSuite("l5d-cni check on a broken cluster", (cluster) => {
  const breaker = new Breaker(cluster);
  const admin = () => cluster.kubectl;

  /** Runs the check in the machine. */
  async function check(flags: readonly string[] = []): Promise<readonly Check[]> {
    const script = '"$@" || test $? -eq 1';
    const command = [process.execPath, outputs.cli, "check", "--output=json", ...flags];
    const out = await cluster.machine.run(["sh", "-c", script, "sh", ...command]);
    return (JSON.parse(out) as { categories: { checks: Check[] }[] }).categories.flatMap(({ checks }) => checks);
  }
  const failures = async () => (await check()).filter(({ result }) => result === "error");

  /** A kubeconfig of the administrator that impersonates another user. */
  async function actingAs(user: string): Promise<string> {
    const path = join(paths.kubeconfigs, user);
    const text = await cluster.kubectl.run("config", "view", "--raw", "--output=json");
    const config = JSON.parse(text) as { users: { user: object }[] };
    for (const each of config.users) Object.assign(each.user, { as: user });
    await writeFile(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  /** Waits until the fault is the first failure of a check, since the cluster notices it with a delay. */
  async function firstFailure({ problem }: Breakage): Promise<Check | undefined> {
    let first: Check | undefined;
    for (const end = Date.now() + 60_000; Date.now() < end; await sleep(500)) {
      [first] = await failures();
      if (problem.test(first?.error ?? "")) break;
    }
    return first;
  }

  beforeAll(async () => {
    await buildCli();
    await cluster.install("--set", `extraEnv[0].name=VAULT_TOKEN,extraEnv[0].value=${VAULT_TOKEN}`);
    await breaker.learn();
    const view = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" };
    await cluster.kubectl.apply({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "viewer" },
      roleRef: view,
      subjects: [{ apiGroup: view.apiGroup, kind: "User", name: "viewer" }],
    });
  });

  test("a healthy cluster has no failure, seen by the administrator or by a user who may view", async () => {
    expect((await check()).filter(({ result }) => result !== "success")).toEqual([]);
    const seen = await check([`--kubeconfig=${await actingAs("viewer")}`]);
    expect(seen.filter(({ result }) => result === "error")).toEqual([]);
    expect(seen.filter(({ result }) => result === "warning")).toEqual([
      expect.objectContaining({ error: expect.stringMatching(/^not allowed to read .*nodes.*: what these show/) }),
    ]);
  });

  const file = (name: string) => join(onDisk(NET_DIR), name);
  const breakages: readonly Breakage[] = [
    {
      name: "an image that cannot be pulled",
      breaks: () => breaker.image("registry.invalid/linkerd-cni:1"),
      repair: () => breaker.restore(),
      problem: /container install-cni: (ErrImagePull|ImagePullBackOff)/,
      remedy: /can pull registry\.invalid\/linkerd-cni:1: values image\.name, image\.version and imagePullSecrets/,
    },
    {
      name: "a foreign image under a mirror's name",
      breaks: () => breaker.image(PROGRAMS_IMAGE),
      repair: () => breaker.restore(),
      problem: /is not this project's: .* it may be linkerd's own under another name/,
      remedy: /set image\.name and image\.version/,
    },
    {
      name: "a priority class that is not there",
      breaks: () => breaker.spec({ priorityClassName: "mesh" }),
      repair: () => breaker.restore(),
      problem: /no PriorityClass with name mesh was found/,
      remedy: /^create PriorityClass mesh, or set priorityClassName/,
    },
    {
      name: "Pod Security",
      breaks: async () => {
        await admin().run("label", "namespace", "linkerd-cni", "pod-security.kubernetes.io/enforce=baseline");
        await breaker.spec({ terminationGracePeriodSeconds: 31 });
      },
      repair: async () => {
        await admin().run("label", "namespace", "linkerd-cni", "pod-security.kubernetes.io/enforce-");
        await breaker.restore();
      },
      problem: /violates PodSecurity/,
      remedy: /kubectl label namespace linkerd-cni pod-security\.kubernetes\.io\/enforce=privileged/,
    },
    {
      name: "the startup taint, which nothing removes",
      breaks: async () => {
        await admin().run("taint", "node", NODE.name, `${KEY}=:NoSchedule`);
        await admin().apply(pod("waiting"));
      },
      repair: async () => {
        await admin().run("taint", "node", NODE.name, `${KEY}-`);
        await admin().stop("waiting");
      },
      problem: /node node has the startup taint linkerd\.io\/cni-not-ready, and 1 pod waits for a node/,
      remedy: /set nodeTaint\.enabled to true, or: kubectl taint node node linkerd\.io\/cni-not-ready-/,
    },
    {
      name: "a broken file that comes first",
      breaks: () => writeFile(file("05-broken.conflist"), '{ "plugins": ['),
      repair: async () => {
        await rm(file("05-broken.conflist"));
        await cluster.rolledOut();
        await admin().run("wait", "node", NODE.name, "--for=condition=Ready", "--timeout=60s");
      },
      problem: /05-broken\.conflist .*it comes first/,
      remedy: /^correct \S*05-broken\.conflist on the node, or move it out/,
    },
    {
      name: "a selector that no node fits",
      breaks: () => breaker.spec({ nodeSelector: { pool: "mesh" } }),
      repair: async () => {
        await cluster.installerGone();
        // It starts while nothing is chained, for the next one.
        await admin().apply(pod("early", { proxy: "sidecar", validator: true }));
        await until("the validator's end", async () =>
          JSON.stringify(await admin().json("get", "pod", "early")).includes('"exitCode":95'),
        );
        await breaker.restore();
      },
      problem: /matches no node: of the only node none fits: node: nodeSelector requires pool=mesh/,
      remedy: /nodeAffinity or tolerations, or label the nodes/,
    },
    {
      name: "a pod that started before the chain",
      breaks: nothing,
      repair: () => admin().stop("early"),
      problem: /^default\/early started before the chain: linkerd-network-validator ended with code 95$/,
      remedy: /^delete it: kubectl delete pod -n default early; or switch repairController\.enabled on/,
    },
    {
      name: "a node whose runtime reads other directories",
      breaks: async () => {
        await mkdir(onDisk(OTHER.bin), { recursive: true });
        await moveCniDirectories(cluster.machine, OTHER.bin, OTHER.conf);
      },
      repair: () => moveCniDirectories(cluster.machine, BIN_DIR, NET_DIR),
      problem: /no valid CNI configuration in \S*\/etc\/cni\/net\.d/,
      remedy: /^set destCNINetDir to the directory from which the node's container runtime reads/,
    },
  ];

  test.each(breakages.map((breakage) => [breakage.name, breakage] as const))(
    "%s: the first failure names cause and remedy",
    async (_, breakage) => {
      await breakage.breaks();
      const first = await firstFailure(breakage);
      await breakage.repair();
      expect(first?.error).toMatch(breakage.problem);
      expect(first?.remedy).toMatch(breakage.remedy);
    },
  );

  test("helm test passes on a node with a complete chain; otherwise it fails and reports it", async () => {
    const tested = () => cluster.helm("test", "linkerd-cni", "--namespace=linkerd-cni", "--logs");
    expect(await tested()).toContain("is redirected to the proxy's port 4140");
    await breaker.spec({ nodeSelector: { pool: "mesh" } });
    await cluster.installerGone();
    const failed = await tested().catch(String);
    await breaker.restore();
    expect(failed).toContain("pod linkerd-cni-test failed");
    expect(failed).toMatch(
      /node node: a connection to port \d+ of \S+ is not redirected to the proxy's port 4140: \w[^.]*\. The plugin is not in/,
    );
  });

  test("the archive of l5d-cni report names the cause, and holds no secret", async () => {
    const archive = join(paths.kubeconfigs, "report.tar.gz");
    await admin().apply(namespace("shop"));
    await until("the namespace's service account", () =>
      admin()
        .run("get", "serviceaccount", "default", "--namespace=shop")
        .then(Boolean, () => false),
    );
    await signalInstaller(cluster.machine, "STOP");
    await admin().apply(pod("cart", { namespace: "shop", proxy: "sidecar" }));
    await until("the pod to be refused", async () =>
      (await admin().run("events", "--namespace=shop", "--for=pod/cart")).includes("FailedCreatePodSandBox"),
    );
    await cluster.machine.run([process.execPath, outputs.cli, "report", `--output=${archive}`]);
    await signalInstaller(cluster.machine, "CONT");
    await admin().run("delete", "pod", "cart", "--namespace=shop", "--timeout=60s");

    const files = await unpacked(await readFile(archive));
    expect(files.get("check.txt")).toMatch(
      /^× .*\n +shop\/cart cannot start: .*the installer on node \S+ \(a pod of DaemonSet linkerd-cni\/linkerd-cni\) does not answer.*\n +check that the linkerd-cni pod on node/m,
    );
    expect(files.get("check.txt")).toMatch(/ +see https:\S+\.md\n/);
    expect(files.get("unread.txt")).toBe("none\n");
    const text = [...files.values()].join("\n");
    expect(text).toContain("name: VAULT_TOKEN");
    const admins = await admin().run("config", "view", "--raw");
    const given = [...admins.matchAll(/(?:-data|token)"?: "?([\w+/=.-]{16,})/g)].map(([, data = ""]) => data);
    // The token and the certificate.
    expect(given).toHaveLength(2);
    for (const secret of [VAULT_TOKEN, ...given]) {
      expect(text).not.toContain(secret);
    }
  });

  test("the repaired cluster is healthy again", async () => {
    await until("no failure", async () => (await failures()).length === 0, 60);
  });
});
