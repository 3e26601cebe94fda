import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { STARTUP_TAINT } from "../cni/contract";
import { LinkerdCni, type LinkerdCniProps } from "./index";
import { daemonSet, found, rules, synthesized } from "./manifests.testing";

test("the installer may patch nodes and removes the startup taint only with nodeTaint.enabled", () => {
  expect(rules({})).not.toContain("patch");
  expect(daemonSet({})).not.toContain("NODE_TAINT");
  const nodeTaint = { enabled: true, key: "example.com/wait" };
  expect(rules({ nodeTaint })).toContain('"resources":["nodes"],"verbs":["get","patch"]');
  expect(daemonSet({ nodeTaint })).toContain('{"name":"NODE_TAINT","value":"example.com/wait"}');
});

test("the installer always tolerates the startup taint, whatever its effect, since nothing else removes it", () => {
  const tolerations = (props: LinkerdCniProps) =>
    (found("DaemonSet", props) as unknown as { spec: { template: { spec: { tolerations?: object[] } } } }).spec.template
      .spec.tolerations;
  const nodeTaint = { enabled: true, key: "example.com/wait" };
  const own = { key: "example.com/wait", operator: "Exists" };
  const other = { key: "a", operator: "Exists" } as const;
  expect(tolerations({ nodeTaint, tolerations: [other] })).toEqual([other, own]);
  expect(tolerations({ nodeTaint, tolerations: [] })).toEqual([own]);
  expect(tolerations({ tolerations: [] })).toBeUndefined();
});

test("the installer removes the startup taints that the runbook names for the Cluster Autoscaler", () => {
  const runbook = readFileSync(join(__dirname, "..", "docs", "runbooks", "startup-taint.md"), "utf8");
  const keys = runbook.match(
    /startup-taint\.cluster-autoscaler\.kubernetes\.io\/[-a-z]+|(?<=--startup-taint=)[-a-z./]+/g,
  );
  expect(keys).toEqual(["startup-taint.cluster-autoscaler.kubernetes.io/linkerd-cni-not-ready", STARTUP_TAINT]);
  for (const key of keys ?? [])
    expect(daemonSet({ nodeTaint: { enabled: true, key } })).toContain(`{"name":"NODE_TAINT","value":"${key}"}`);
});

test("a policy that taints new nodes, in the requested API version", () => {
  const policies = (admissionPolicy: "" | "v1" | "v1beta1", enabled = true) =>
    synthesized({ nodeTaint: { enabled, admissionPolicy } })
      .filter(({ kind }) => kind.startsWith("MutatingAdmissionPolicy"))
      .map(({ apiVersion, kind }) => `${apiVersion} ${kind}`);
  expect(policies("")).toEqual([]);
  expect(policies("v1", false)).toEqual([]);
  for (const version of ["v1", "v1beta1"] as const) {
    const group = `admissionregistration.k8s.io/${version}`;
    expect(policies(version)).toEqual([`${group} MutatingAdmissionPolicy`, `${group} MutatingAdmissionPolicyBinding`]);
  }
});

test("a policy that limits each installer to its node, unless it is disabled", () => {
  const policies = (nodeTaint: NonNullable<LinkerdCniProps["nodeTaint"]>) =>
    synthesized({ namespace: "mesh", nodeTaint }).filter(({ kind }) => kind.startsWith("ValidatingAdmissionPolicy"));
  expect(policies({})).toEqual([]);
  expect(policies({ enabled: true, ownNodeOnly: false })).toEqual([]);
  const [policy, policyBinding] = policies({ enabled: true, key: "example.com/wait" });
  expect(policy).toMatchObject({
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: "linkerd-cni-own-node" },
    spec: {
      failurePolicy: "Fail",
      matchConditions: [{ expression: 'request.userInfo.username == "system:serviceaccount:mesh:linkerd-cni"' }],
    },
  });
  expect(JSON.stringify(policy)).toContain('taint.key == \\"example.com/wait\\"');
  expect(policyBinding).toMatchObject({
    kind: "ValidatingAdmissionPolicyBinding",
    spec: { policyName: "linkerd-cni-own-node", validationActions: ["Deny"] },
  });
});

test("its policies are public members and can be patched", () => {
  const chart = new Chart(new App(), "chart");
  const { nodeTaint } = new LinkerdCni(chart, "cni", { nodeTaint: { enabled: true, admissionPolicy: "v1" } });
  nodeTaint.taintPolicies.v1.policy.metadata.addAnnotation("example.com/owner", "platform");
  nodeTaint.ownNodePolicy.binding.metadata.addAnnotation("example.com/owner", "platform");
  const owned = (chart.toJson() as { kind: string; metadata: { annotations?: object } }[])
    .filter(({ metadata }) => "example.com/owner" in (metadata.annotations ?? {}))
    .map(({ kind }) => kind);
  expect(owned).toEqual(["MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);
});
