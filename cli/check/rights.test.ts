import { requiredGrants } from "./snapshot";

test("a plugin with the installer's token needs the installer's role to read the API server's Service", () => {
  const containers = [{ name: "install-cni", env: [] }];
  const daemonSet = { metadata: { name: "linkerd-cni" }, spec: { template: { spec: { containers } } } };
  const roles = requiredGrants(daemonSet, "linkerd-cni").filter(({ kind }) => kind === "ClusterRole");
  expect(roles).toEqual([
    expect.objectContaining({
      metadata: expect.objectContaining({ name: "linkerd-cni" }),
      rules: expect.arrayContaining([
        { apiGroups: [""], resources: ["services"], resourceNames: ["kubernetes"], verbs: ["get"] },
      ]),
    }),
  ]);
});
