import type { LinkerdCniProps, LinkerdMultusProps } from "../../constructs";
import { constructed, linkerd2Cni, linkerdMultus, type OwnChart } from "../chart/charts";
import { type ApiObject, collectionOf, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";

const cni: LinkerdCniProps = {
  repairController: { enabled: true },
  networkPolicy: { enabled: true, from: [{ podSelector: {} }] },
  nodeTaint: { enabled: true, admissionPolicy: "v1beta1" },
  grafanaDashboard: { enabled: true },
  nri: { enabled: true, require: { admissionPolicy: "v1beta1" } },
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["a"] }] }],
    },
  },
};
const multus: LinkerdMultusProps = { networkPolicy: { enabled: true } };

const cases: readonly (readonly [string, OwnChart, object])[] = [
  ["linkerd2-cni", linkerd2Cni, {}],
  ["linkerd2-cni with more of everything", linkerd2Cni, cni],
  ["linkerd-multus", linkerdMultus, {}],
  ["linkerd-multus with more of everything", linkerdMultus, multus],
];

suite("two tools that manage one installation", realApiMissing(), () => {
  let api: RealApi;
  beforeAll(async () => {
    api = await RealApi.start("nobody");
    // Multus' operator reads the plugin's configuration there.
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "linkerd-cni" } });
  });
  afterAll(() => api?.close());

  const namespaces = cases.map((_, index) => `tools-${index}`);
  const at = (object: ApiObject, manager: string) =>
    `${collectionOf(object)}/${object.metadata.name}?fieldManager=${manager}`;

  /** Applies an object server-side as a manager, without force. @returns the result @throws if others own a field */
  const applied = (object: ApiObject, manager: string) =>
    api.json<{ metadata: { generation?: number } }>({
      method: "PATCH",
      path: at(object, manager),
      contentType: "application/apply-patch+yaml",
      body: object,
    });

  test.each(cases.map((one, index) => [...one, namespaces[index] ?? ""] as const))(
    "%s: neither conflicts with the other, nor with helm, and nothing changes",
    async (_, chart, values, namespace) => {
      await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
      const all = constructed(chart, values, namespace) as unknown as readonly ApiObject[];
      // Only helm makes the pod of `helm test`: Argo CD leaves test hooks out.
      const objects = all.filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === undefined);
      for (const object of objects) {
        // Helm owns what the API server fills in, too.
        const path = `${collectionOf(object)}?fieldManager=helm`;
        const made = await api.json<{ metadata: { generation?: number } }>({ method: "POST", path, body: object });
        for (const manager of ["argocd-controller", "kustomize-controller"]) {
          const { metadata } = await applied(object, manager);
          expect([object.kind, metadata.generation]).toEqual([object.kind, made.metadata.generation]);
        }
        await api.json({ method: "DELETE", path: at(object, "helm") });
      }
    },
  );
});
