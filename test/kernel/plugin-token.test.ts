import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { readClaims } from "../../kubernetes/service-account-token";
import { httpsTransport } from "../../kubernetes/transport";
import { buildPrograms } from "../support/program";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[{"type":"bridge"}]}\n';
const NAMESPACE = "linkerd-cni";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const KINDS = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/** The plugin's requests. */
const ASKED = [
  "/api/v1/namespaces/shop/pods/cart",
  "/api/v1/namespaces/shop",
  "/api/v1/namespaces/default/services/kubernetes",
];

const named = (kind: string, name: string): ApiObject => ({ apiVersion: "v1", kind, metadata: { name } });

/** A rule of a role. */
interface Rule {
  readonly verbs: readonly string[];
  readonly resources?: readonly string[];
}

suite("the plugin's token, with a real API server and the chart's rights", realApiMissing(), () => {
  let api: RealApi;
  let node: TestNode;
  let installer: Installer;

  beforeAll(async () => {
    await buildPrograms();
    api = await RealApi.start(`system:serviceaccount:${NAMESPACE}:linkerd-cni`);
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", { namespace: NAMESPACE });
    const objects = (chart.toJson() as ApiObject[]).filter(({ kind }) => KINDS.includes(kind));
    await api.create(named("Namespace", NAMESPACE), named("Namespace", "shop"), ...objects);
    const cart = { metadata: { name: "cart" }, spec: { containers: [{ name: "app", image: "none" }] } };
    await api.json({ method: "POST", path: "/api/v1/namespaces/shop/pods", body: cart });
  }, 90_000);
  beforeEach(async () => {
    await api.create(named("Node", "node-a"));
    node = new TestNode({ "10-k.conflist": LIST });
    writeFileSync(join(node.accountDir, "ca.crt"), api.server.ca ?? "");
    writeFileSync(join(node.accountDir, "token"), api.server.token ?? "");
  });
  afterEach(async () => {
    await installer.stop("SIGKILL");
    node.delete();
    await api.request({ method: "DELETE", path: "/api/v1/nodes/node-a" });
  });
  afterAll(() => api.close());

  async function start(): Promise<string> {
    installer = node.start({
      KUBERNETES_SERVICE_PORT: String(api.server.port),
      POD_NAMESPACE: NAMESPACE,
      POD_NAME: "linkerd-cni-x7k2p",
      NODE_NAME: "node-a",
      PLUGIN_SERVICE_ACCOUNT: "linkerd-cni-plugin",
      PLUGIN_TOKEN_SECONDS: "3600",
    });
    await installer.says("ends in our stanza");
    return JSON.parse(node.read("ZZZ-linkerd-cni-kubeconfig")).users[0].user.token;
  }

  /** Asks as the plugin does. */
  async function ask(token: string, path: string, body?: object) {
    const transport = httpsTransport({ ...api.server, token });
    const method = body === undefined ? "GET" : "POST";
    const answer = await transport({ path, method, deadlineMs: 10_000, ...(body === undefined ? {} : { body }) });
    transport.close();
    return answer;
  }

  test("belongs to an account that may get only the plugin's objects", async () => {
    const token = await start();
    const claims = readClaims(token, (text) => Buffer.from(text, "base64url").toString("utf8"));
    expect(claims).toMatchObject({ subject: `system:serviceaccount:${NAMESPACE}:linkerd-cni-plugin` });
    expect((claims?.expiresAt ?? 0) - (claims?.issuedAt ?? 0)).toBe(3_600_000);
    for (const path of ASKED) expect([path, (await ask(token, path)).status]).toEqual([path, 200]);
    const refused = [
      "/api/v1/pods",
      "/api/v1/namespaces",
      "/api/v1/nodes/node-a",
      "/api/v1/namespaces/shop/secrets/any",
      "/api/v1/namespaces/shop/services/any",
      `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/linkerd-cni`,
    ];
    for (const path of refused) expect([path, (await ask(token, path)).status]).toEqual([path, 403]);
    const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview" };
    const { body } = await ask(token, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
      ...review,
      spec: { namespace: NAMESPACE },
    });
    const { resourceRules } = (JSON.parse(body) as { status: { resourceRules: readonly Rule[] } }).status;
    // Everybody may ask who they are, and what they may do.
    const more = resourceRules.filter(
      ({ resources = [] }) => !resources.every((each) => each.startsWith("selfsubject")),
    );
    expect(more.map(({ verbs, resources }) => [verbs, resources])).toEqual([
      [["get"], ["pods", "namespaces"]],
      [["get"], ["services"]],
    ]);
  });

  test("ends with the node that it is bound to", async () => {
    const token = await start();
    expect((await ask(token, ASKED[0] ?? "")).status).toBe(200);
    await api.json({ method: "DELETE", path: "/api/v1/nodes/node-a" });
    await until("the token's end", async () => (await ask(token, ASKED[0] ?? "")).status === 401);
  });

  describe("of a node that was removed, and added under the same name", () => {
    const nodes = "/api/v1/nodes";
    const addAgain = async () => {
      await api.json({ method: "DELETE", path: `${nodes}/node-a` });
      await api.create(named("Node", "node-a"));
    };
    const tokenNow = () => JSON.parse(node.read("ZZZ-linkerd-cni-kubeconfig")).users[0].user.token as string;
    const isGood = async (token: string) => (await ask(token, ASKED[0] ?? "")).status === 200;

    test("is replaced by an installer that continues", async () => {
      const former = await start();
      await addAgain();
      await until("the former token's end", async () => !(await isGood(former)));
      // It looks every half minute.
      await until("a token of the new node", async () => tokenNow() !== former && (await isGood(tokenNow())), 120);
      expect(node.isChained("10-k.conflist")).toBe(true);
    }, 240_000);

    test("is replaced at once by the new node's installer", async () => {
      const former = await start();
      await installer.stop("SIGKILL");
      await addAgain();
      await until("the former token's end", async () => !(await isGood(former)));
      await start();
      await until("a token of the new node", async () => tokenNow() !== former && (await isGood(tokenNow())), 60);
      expect(node.isChained("10-k.conflist")).toBe(true);
    }, 240_000);
  });

  test.each([
    [
      "may not make tokens",
      "the API server answers 403",
      `${RBAC}/namespaces/${NAMESPACE}/rolebindings/linkerd-cni-plugin`,
    ],
    ["makes tokens that may nothing", "may not get pods (403)", `${RBAC}/clusterrolebindings/linkerd-cni-plugin`],
  ])("if the installer %s, the plugin gets the installer's own", async (_, why, path) => {
    const { apiVersion, kind, metadata, ...binding } = await api.json<ApiObject>({ path });
    await api.json({ method: "DELETE", path });
    try {
      expect(await start()).toBe(api.server.token);
      await installer.says(`${why}): it uses the installer's own token`);
    } finally {
      const { name, namespace } = metadata;
      await api.create({
        ...{ apiVersion, kind, ...binding },
        metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      });
    }
  });
});
