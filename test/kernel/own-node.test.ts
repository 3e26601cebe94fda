import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { httpsTransport } from "../../kubernetes/transport";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const NAMESPACE = "linkerd-cni";
const KEY = "linkerd.io/cni-not-ready";
const OURS = { key: KEY, effect: "NoSchedule" };
const OTHER = { key: "example.com/maintenance", effect: "NoExecute" };
const KINDS = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"];
const FORBIDDEN = 403;
const REFUSAL = "may change only the node that its token names";

const isWanted = ({ kind }: ApiObject) => KINDS.includes(kind) || kind.startsWith("ValidatingAdmissionPolicy");
const named = (kind: string, name: string): ApiObject => ({ apiVersion: "v1", kind, metadata: { name } });
const replace = (path: string, value: unknown) => [{ op: "add", path, value }];
const withoutTaint = [{ op: "remove", path: "/spec/taints/0" }];

suite("nodeTaint.ownNodeOnly, with a real API server and the chart's rights", realApiMissing(), () => {
  let api: RealApi;
  /** A token that the API server made for an installer's pod on node-1, and one that names no node. */
  let ofPod: ReturnType<typeof httpsTransport>;
  let ofNobody: ReturnType<typeof httpsTransport>;

  beforeAll(async () => {
    api = await RealApi.start(`system:serviceaccount:${NAMESPACE}:linkerd-cni`);
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", { namespace: NAMESPACE, nodeTaint: { enabled: true } });
    const objects = (chart.toJson() as ApiObject[]).filter(isWanted);
    await api.create(named("Namespace", NAMESPACE), ...objects, named("Node", "node-1"), named("Node", "node-2"));
    const containers = [{ name: "install-cni", image: "none" }];
    const spec = { nodeName: "node-1", serviceAccountName: "linkerd-cni", containers };
    const pod = await api.json<{ metadata: { uid: string } }>({
      method: "POST",
      path: `/api/v1/namespaces/${NAMESPACE}/pods`,
      body: { metadata: { name: "installer" }, spec },
    });
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "installer", uid: pod.metadata.uid };
    const made = await api.json<{ status: { token: string } }>({
      method: "POST",
      path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/linkerd-cni/token`,
      body: { spec: { expirationSeconds: 600, boundObjectRef } },
    });
    ofPod = httpsTransport({ ...api.server, token: made.status.token });
    ofNobody = httpsTransport(api.server);
    // A policy takes a moment to be in force; so do roles, without which the answer is the same.
    await until("the policy", async () => (await patch(ofNobody, "node-1", [])).body.includes(REFUSAL));
  });
  beforeEach(async () => {
    for (const node of ["node-1", "node-2"]) {
      const body = { metadata: { labels: null }, spec: { taints: [OURS, OTHER], unschedulable: null } };
      const contentType = "application/merge-patch+json";
      await api.json({ method: "PATCH", path: `/api/v1/nodes/${node}`, body, contentType });
    }
  });
  afterAll(async () => {
    ofPod?.close();
    ofNobody?.close();
    await api?.close();
  });

  const patch = (send: typeof ofPod, node: string, body: readonly object[]) => {
    const contentType = "application/json-patch+json";
    return send({ method: "PATCH", path: `/api/v1/nodes/${node}`, body, contentType, deadlineMs: 10_000 });
  };

  test("an installer removes the taint from its own node", async () => {
    expect((await patch(ofPod, "node-1", withoutTaint)).status).toBe(200);
    const { spec } = await api.json<{ spec: { taints: object[] } }>({ path: "/api/v1/nodes/node-1" });
    expect(spec.taints).toEqual([OTHER]);
  });

  test("another node's it does not, nor does a token that names no node", async () => {
    const refused = [await patch(ofPod, "node-2", withoutTaint), await patch(ofNobody, "node-1", withoutTaint)];
    for (const { status, body } of refused) {
      expect(status).toBe(FORBIDDEN);
      expect(body).toContain(REFUSAL);
    }
  });

  test.each([
    ["a label", replace("/metadata/labels", { "node-role.kubernetes.io/control-plane": "" })],
    ["another taint's absence", [{ op: "remove", path: "/spec/taints/1" }]],
    ["a new taint", replace("/spec/taints/-", { key: "a", effect: "NoSchedule" })],
    ["a cordon", replace("/spec/unschedulable", true)],
    ["a finalizer", replace("/metadata/finalizers", ["example.com/kept"])],
    ["an owner", replace("/metadata/ownerReferences", [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "u" }])],
    ["a provider", replace("/spec/providerID", "aws:///zone/i-1")],
    ["a network", replace("/spec/podCIDRs", ["10.0.0.0/24"])],
  ])("on its own node it does not bring about %s", async (_, body) => {
    expect((await patch(ofPod, "node-1", body)).status).toBe(FORBIDDEN);
  });

  test("others change nodes as before", async () => {
    const body = replace("/spec/unschedulable", true);
    const contentType = "application/json-patch+json";
    const { status } = await api.request({ method: "PATCH", path: "/api/v1/nodes/node-2", body, contentType });
    expect(status).toBe(200);
  });
});
