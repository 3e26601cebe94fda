/** What an installer does on SIGTERM, by a real API server's answers: 401 if its token is refused, 403 by its permissions. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { httpsTransport } from "../../kubernetes/transport";
import { buildPrograms } from "../support/program";
import { type ApiObject, collectionOf, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const FILE = "10-k.conflist";
const RIGHTS = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
const [UNAUTHORIZED, FORBIDDEN] = [401, 403];
const POD = "linkerd-cni-x7k2p";

/** The rules of linkerd's ClusterRole. */
const LINKERDS = [
  { apiGroups: [""], resources: ["pods", "nodes", "namespaces", "services"], verbs: ["list", "get", "watch"] },
];

/** An installation in a namespace of its own. */
interface Release {
  readonly namespace: string;
  readonly node: TestNode;
  readonly objects: readonly ApiObject[];
  readonly installer: Installer;
  /** The status of the API server's answer about the DaemonSet to the pod's token. */
  readonly status: () => Promise<number>;
}

type Step = (release: Release) => Promise<void>;
const both =
  (first: Step, second: Step): Step =>
  async (release) => {
    await first(release);
    await second(release);
  };
const nothing: Step = async () => undefined;

interface Situation {
  /** What is deleted before SIGTERM. */
  readonly before: Step;
  /** The API server's first answer to the stopping installer. */
  readonly status: number;
  /** What is deleted next: the API server remembers an accepted token for ten seconds. */
  readonly after?: Step;
  readonly keeps: boolean;
  readonly why: string;
}

const situations: Readonly<Record<string, Situation>> = {
  "the pod is deleted by force": {
    before: forceDelete,
    status: UNAUTHORIZED,
    keeps: true,
    why: "only our pod is deleted",
  },
  "the pod is deleted by force, and its role binding is missing": {
    before: (release) => remove(release, "ClusterRoleBinding"),
    status: FORBIDDEN,
    after: forceDelete,
    keeps: true,
    why: "answers the one not bound to our pod with 403",
  },
  "helm uninstall, done": {
    before: both(removeRoles, removeAccount),
    status: UNAUTHORIZED,
    keeps: false,
    why: "the service account is deleted",
  },
  "helm uninstall, which deletes roles before the account": {
    before: removeRoles,
    status: FORBIDDEN,
    after: removeAccount,
    keeps: false,
    why: "the service account is deleted",
  },
  "a rollback to linkerd's chart": {
    before: rollBack,
    status: FORBIDDEN,
    keeps: true,
    why: "nothing says that it is deleted",
  },
  "a rollback to linkerd's chart, and the pod is deleted by force": {
    before: both(rollBack, forceDelete),
    status: UNAUTHORIZED,
    keeps: true,
    why: "only our pod is deleted",
  },
  "the namespace is being deleted, with its pod": {
    before: both(deleteNamespace, forceDelete),
    status: UNAUTHORIZED,
    keeps: false,
    why: "our namespace is being deleted",
  },
  "the namespace is being deleted, after a rollback": {
    before: both(rollBack, deleteNamespace),
    status: FORBIDDEN,
    keeps: false,
    why: "our namespace is being deleted",
  },
};

let api: RealApi;

const at = (object: ApiObject): string => `${collectionOf(object)}/${object.metadata.name}`;

async function remove({ objects }: Release, ...kinds: readonly string[]): Promise<void> {
  for (const object of objects.filter(({ kind }) => kinds.includes(kind))) {
    await api.json({ method: "DELETE", path: at(object) });
  }
}

async function forceDelete({ namespace }: Release): Promise<void> {
  await api.json({
    method: "DELETE",
    path: `/api/v1/namespaces/${namespace}/pods/${POD}`,
    body: { gracePeriodSeconds: 0 },
  });
}

function removeRoles(release: Release): Promise<void> {
  return remove(release, ...RIGHTS.filter((kind) => kind !== "ServiceAccount").reverse());
}

function removeAccount(release: Release): Promise<void> {
  return remove(release, "ServiceAccount");
}

/** Changes the permissions to those of linkerd's chart, whose role has no DaemonSets. */
async function rollBack(release: Release): Promise<void> {
  const role = release.objects.find(({ kind }) => kind === "ClusterRole") as ApiObject;
  const contentType = "application/merge-patch+json";
  await api.json({ method: "PATCH", path: at(role), body: { rules: LINKERDS }, contentType });
  await remove(release, "Role", "RoleBinding");
}

/** Without a namespace controller it stays, marked as terminating. */
async function deleteNamespace({ namespace }: Release): Promise<void> {
  await api.json({ method: "DELETE", path: `/api/v1/namespaces/${namespace}` });
}

/** The chart's objects, with names of their own for those that have no namespace. */
function chartOf(namespace: string): readonly ApiObject[] {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", { namespace });
  return (chart.toJson() as (ApiObject & { roleRef?: { kind: string; name: string } })[])
    .filter(({ kind }) => RIGHTS.includes(kind))
    .map((object) => {
      const { kind, metadata, roleRef } = object;
      return {
        ...object,
        ...(kind.startsWith("Cluster") ? { metadata: { ...metadata, name: namespace } } : {}),
        ...(roleRef?.kind === "ClusterRole" ? { roleRef: { ...roleRef, name: namespace } } : {}),
      };
    });
}

async function install(namespace: string): Promise<Release> {
  const objects = chartOf(namespace);
  await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }, ...objects);
  const labels = { app: namespace };
  const template = { metadata: { labels }, spec: { containers: [{ name: "install-cni", image: "none" }] } };
  const daemonSet = { metadata: { name: "linkerd-cni" }, spec: { selector: { matchLabels: labels }, template } };
  const daemonSets = `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
  const { metadata } = await api.json<ApiObject & { metadata: { uid: string } }>({
    method: "POST",
    path: daemonSets,
    body: daemonSet,
  });
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "linkerd-cni", uid: metadata.uid, controller: true };
  const pod = await api.json<{ metadata: { uid: string } }>({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/pods`,
    body: {
      metadata: { name: POD, ownerReferences: [owner] },
      spec: { nodeName: "node-1", serviceAccountName: "linkerd-cni", containers: template.spec.containers },
    },
  });
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: POD, uid: pod.metadata.uid };
  const { status } = await api.json<{ status: { token: string } }>({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/linkerd-cni/token`,
    body: { spec: { expirationSeconds: 3600, boundObjectRef } },
  });
  const node = new TestNode({ [FILE]: LIST });
  writeFileSync(join(node.accountDir, "token"), status.token);
  writeFileSync(join(node.accountDir, "ca.crt"), api.server.ca ?? "");
  const installer = node.start({
    KUBERNETES_SERVICE_PORT: String(api.server.port),
    UNINSTALL_ON_STOP: "auto",
    POD_NAMESPACE: namespace,
    POD_NAME: POD,
    POD_UID: pod.metadata.uid,
  });
  const ofPod = httpsTransport({ ...api.server, token: status.token });
  const ask = () => ofPod({ path: `${daemonSets}/linkerd-cni`, deadlineMs: 10_000 });
  return { namespace, node, objects, installer, status: async () => (await ask()).status };
}

suite("on SIGTERM, with a real API server", realApiMissing(), () => {
  const directory = mkdtempSync(join(tmpdir(), "installer-deleted-"));
  const audit = join(directory, "audit");
  const outcomes = new Map<string, { readonly log: string; readonly files: object; readonly wanted: object }>();

  beforeAll(async () => {
    await buildPrograms();
    const policy = join(directory, "policy");
    const rules = [{ level: "Metadata", resources: [{ group: "", resources: ["serviceaccounts/token"] }] }];
    writeFileSync(policy, JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules }));
    api = await RealApi.start("nobody", [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`]);
    await Promise.all(Object.keys(situations).map(outcome));
  });
  afterAll(async () => {
    await api?.close();
    rmSync(directory, { recursive: true });
  });

  /** Whether the API server has issued a token to the installer itself. */
  function hasOtherToken(namespace: string): boolean {
    const user = `"username":"system:serviceaccount:${namespace}:linkerd-cni"`;
    const lines = existsSync(audit) ? readFileSync(audit, "utf8").split("\n") : [];
    return lines.some((line) => line.includes(user) && line.includes('"code":201'));
  }

  async function outcome(title: string, index: number): Promise<void> {
    const { before, status, after = nothing, keeps } = situations[title] as Situation;
    const release = await install(`release-${index}`);
    const { node, installer, namespace } = release;
    try {
      await installer.says("ends in our stanza");
      await until("the other token", () => hasOtherToken(namespace));
      const installed = node.content();
      await before(release);
      await until(`${status}: ${title}`, async () => (await release.status()) === status);
      const ended = installer.stop();
      await after(release);
      await ended;
      const files = Object.entries(node.content()).map(([name, text]) => [
        name,
        text.replace(/,\n {2}"left": true/, ""),
      ]);
      outcomes.set(title, {
        log: installer.log,
        files: Object.fromEntries(files),
        wanted: keeps ? installed : { [`net.d/${FILE}`]: LIST },
      });
    } finally {
      await installer.stop("SIGKILL");
      node.delete();
    }
  }

  test.each(Object.entries(situations))("%s", (title, { why }) => {
    const { log, files, wanted } = outcomes.get(title) ?? { log: "", files: {}, wanted: {} };
    expect(log).toMatch(new RegExp(`stopping: .*${why}.*: (removing|leaving)`));
    expect(files).toEqual(wanted);
  });
});
