/** Linkerd's own injector (its folder: LINKERD_PEER) behind the policy of namespaceUIDRange, with a real API server. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { App, Chart } from "cdk8s";
import { parseAllDocuments } from "yaml";
import { root } from "../../build/paths";
import { podFromObject } from "../../cni/api-objects";
import { decide, type Namespace } from "../../cni/decide";
import { parseStanza } from "../../cni/parse-stanza";
import { redirectRules } from "../../cni/redirect/rules";
import { LinkerdCni } from "../../constructs";
import { get } from "../support/http";
import { kubeconfig } from "../support/kubeconfig";
import { freePort } from "../support/ports";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { certificateFor } from "../support/webhook";

const peer = process.env["LINKERD_PEER"] ?? "";
const RANGE = "openshift.io/sa.scc.uid-range";
const PROXY = "linkerd-proxy";
const INJECT = { "linkerd.io/inject": "enabled" };

type Annotations = Readonly<Record<string, string>>;

interface Container {
  readonly name: string;
  readonly securityContext?: { readonly runAsUser?: number; readonly runAsGroup?: number };
}

interface Pod {
  readonly metadata: { readonly annotations: Annotations };
  readonly spec: { readonly containers: readonly Container[]; readonly initContainers?: readonly Container[] };
}

interface Installed extends ApiObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly webhooks?: readonly object[];
}

function injectorMissing(): string | undefined {
  if (peer === "") return "LINKERD_PEER";
  return existsSync(join(peer, "linkerd-controller")) ? undefined : "linkerd-controller in LINKERD_PEER";
}

/** The manifests of `linkerd install` with the setting that docs/multus.md has for OpenShift. */
function installed(): readonly Installed[] {
  const page = readFileSync(join(root, "docs", "multus.md"), "utf8");
  const [, setting = ""] = /`--set (networkValidator\.[^`]+)`/.exec(page) ?? [];
  const flags = ["--ignore-cluster", "--linkerd-cni-enabled", "--set", setting];
  const text = execFileSync(join(peer, "linkerd"), ["install", ...flags], { encoding: "utf8" });
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as Installed | null) ?? []);
}

/** Linkerd's injector as a process, which reads its files where its pod has them mounted. */
class LinkerdInjector {
  private readonly directory = mkdtempSync(join(tmpdir(), "injector-"));
  private readonly pair = certificateFor("injector");
  private child: ChildProcess | undefined;
  private log = "";

  private constructor(private readonly manifests: readonly Installed[]) {}

  /** Starts it, and registers it as linkerd's chart does, but by an address of this machine. */
  static async start(api: RealApi): Promise<LinkerdInjector> {
    const injector = new LinkerdInjector(installed());
    const port = await freePort();
    await injector.spawn(api, port);
    await api.create(injector.registration(port));
    return injector;
  }

  private manifest(kind: string, name: string): Installed {
    const found = this.manifests.find((made) => made.kind === kind && made.metadata.name === name);
    if (found === undefined) throw new Error(`linkerd install made no ${kind} ${name}`);
    return found;
  }

  private registration(port: number): ApiObject {
    const { webhooks = [], ...others } = this.manifest(
      "MutatingWebhookConfiguration",
      "linkerd-proxy-injector-webhook-config",
    );
    const clientConfig = { url: `https://127.0.0.1:${port}/`, caBundle: btoa(this.pair.cert) };
    // An injector that does not answer must fail the test.
    return {
      ...others,
      webhooks: webhooks.map((hook) => ({ ...hook, clientConfig, failurePolicy: "Fail" })),
    } as ApiObject;
  }

  private async spawn({ admin }: RealApi, port: number): Promise<void> {
    const write = (name: string, text = "") => {
      const path = join(this.directory, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    };
    write("tls/tls.crt", this.pair.cert);
    write("tls/tls.key", this.pair.key);
    write("config/values", this.manifest("ConfigMap", "linkerd-config").data?.["values"]);
    const roots = this.manifest("ConfigMap", "linkerd-identity-trust-roots").data;
    write("identity/trust-roots/ca-bundle.crt", roots?.["ca-bundle.crt"]);
    write("kubeconfig", kubeconfig(admin));
    const admins = await freePort();
    const flags = [`--addr=127.0.0.1:${port}`, `--metrics-addr=127.0.0.1:${admins}`];
    const script =
      'mount -t tmpfs tmpfs /run && cp -r "$0" /run/linkerd && exec "$@" --kubeconfig=/run/linkerd/kubeconfig';
    const command = [join(peer, "linkerd-controller"), "proxy-injector", ...flags];
    this.child = spawn("unshare", ["--mount", "sh", "-c", script, this.directory, ...command], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.log += chunk;
    });
    const isReady = async () => {
      if (this.child?.exitCode !== null) throw new Error(`linkerd's injector ended: ${this.log}`);
      return (await get(admins, "/ready")).status === 200;
    };
    await until("linkerd's injector", isReady);
  }

  close(): void {
    this.child?.kill("SIGKILL");
    rmSync(this.directory, { recursive: true });
  }
}

const lacks = injectorMissing() ?? realApiMissing() ?? missing({ root: true, programs: ["unshare"] });

suite("linkerd's own injector after the policy of namespaceUIDRange", lacks, () => {
  let api: RealApi;
  let injector: LinkerdInjector;
  let namespaces = 0;
  let policies: readonly ApiObject[];
  let stanza: ReturnType<typeof parseStanza>;

  /** A new pod of a new namespace after the policy and the injector, and what the plugin would do for it. */
  async function admitted(annotations: Annotations, pod: Annotations = {}) {
    const name = `range-${namespaces++}`;
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name, annotations } });
    // Without a controller manager no account is set.
    const spec = { serviceAccountName: "default", containers: [{ name: "app", image: "none" }] };
    const made = await api.json<Pod>({
      method: "POST",
      path: `/api/v1/namespaces/${name}/pods?dryRun=All`,
      body: { metadata: { name: "web", annotations: pod }, spec },
    });
    const containers = [...made.spec.containers, ...(made.spec.initContainers ?? [])];
    const proxy = containers.find((container) => container.name === PROXY);
    const namespace: Namespace = { name, annotations };
    const decision = decide(podFromObject({ namespace: name, name: "web" }, made), { namespace }, stanza);
    return { containers, proxy, decision };
  }

  /** The user and group whose traffic the plugin's rules for a pod leave alone. */
  function excluded({ decision }: Awaited<ReturnType<typeof admitted>>) {
    if (decision.kind !== "redirect") throw new Error(`the pod is skipped: ${decision.reason}`);
    const left = redirectRules(decision.options).flatMap(({ outbound }) =>
      outbound.filter(({ verdict }) => verdict.kind === "return").flatMap(({ matches }) => matches),
    );
    return left.filter(({ kind }) => kind === "uid" || kind === "gid");
  }

  beforeAll(async () => {
    api = await RealApi.start("nobody");
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", { platform: "openshift", namespaceUIDRange: { admissionPolicy: "v1beta1" } });
    const manifests = chart.toJson() as Installed[];
    const config = manifests.find(({ kind }) => kind === "ConfigMap")?.data?.["cni_network_config"] ?? "";
    stanza = parseStanza(JSON.parse(config), "linkerd-cni");
    policies = manifests.filter(({ kind }) => kind.startsWith("MutatingAdmissionPolicy"));
    await api.create(...policies);
    injector = await LinkerdInjector.start(api);
    // Both take a moment to be in force.
    const isInForce = async () => (await admitted({ ...INJECT, [RANGE]: "5000/5000" })).proxy?.securityContext;
    await until("policy and webhook", async () => (await isInForce())?.runAsUser === 7102);
  });

  afterAll(async () => {
    injector?.close();
    await api?.close();
  });

  test.each([
    ["1000670000/10000", 1_000_672_102, [1_000_670_000, 1_000_679_999]],
    ["1000-9999", 3102, [1000, 9999]],
    ["1000/100", 1000, [1000, 1099]],
    ["1000-1099", 1000, [1000, 1099]],
  ] as const)("range %s: the proxy runs as user %i, which the rules exclude", async (range, uid, [first, last]) => {
    for (const [namespace, pod] of [
      [{ ...INJECT, [RANGE]: range }, {}],
      [{ [RANGE]: range }, INJECT],
    ] as const) {
      const made = await admitted(namespace, pod);
      expect(made.proxy?.securityContext?.runAsUser).toBe(uid);
      // A security context constraint refuses the pod for any of its containers.
      for (const { securityContext } of made.containers) {
        const { runAsUser = uid } = securityContext ?? {};
        expect(runAsUser).toBeGreaterThanOrEqual(first);
        expect(runAsUser).toBeLessThanOrEqual(last);
      }
      expect(excluded(made)).toEqual([{ kind: "uid", id: uid }]);
    }
  });

  test.each([
    ["no range", {}],
    ["several ranges in one annotation", { [RANGE]: "1000/100,2000/100" }],
  ])("%s: the proxy keeps linkerd's own user, which the rules exclude", async (_, range) => {
    const made = await admitted({ ...INJECT, ...range });
    expect(made.proxy?.securityContext?.runAsUser).toBe(2102);
    expect(excluded(made)).toEqual([{ kind: "uid", id: 2102 }]);
  });

  test("a user that the pod or its namespace names stays", async () => {
    const range = { ...INJECT, [RANGE]: "1000/100" };
    const uid = { "config.linkerd.io/proxy-uid": "1007" };
    for (const made of [await admitted({ ...range, ...uid }), await admitted(range, uid)]) {
      expect(made.proxy?.securityContext?.runAsUser).toBe(1007);
      expect(excluded(made)).toEqual([{ kind: "uid", id: 1007 }]);
    }
  });

  test("a group that the namespace names is the proxy's, and the rules exclude it", async () => {
    const made = await admitted({ ...INJECT, [RANGE]: "1000/100", "config.linkerd.io/proxy-gid": "3000" });
    expect(made.proxy?.securityContext).toMatchObject({ runAsUser: 1000, runAsGroup: 3000 });
    expect(excluded(made)).toEqual([
      { kind: "uid", id: 1000 },
      { kind: "gid", id: 3000 },
    ]);
    expect((await admitted({ ...INJECT, [RANGE]: "1000/100" })).proxy?.securityContext).not.toHaveProperty(
      "runAsGroup",
    );
  });

  test("a pod that is not injected is unchanged", async () => {
    const { proxy, decision } = await admitted({ ...INJECT, [RANGE]: "1000/100" }, { "linkerd.io/inject": "disabled" });
    expect(proxy).toBeUndefined();
    expect(decision).toMatchObject({ kind: "skip" });
  });
});
