import { parseAllDocuments } from "yaml";
import { MUTATING_POLICY_VERSIONS } from "../constructs/admission";
import { values } from "../constructs/values";
import { fieldsOf } from "../helm/value";
import type { Ended } from "./io";
import { runIn, type World } from "./io.testing";
import type { Manifest } from "./resources";

const names = ({ kind, metadata }: Manifest) => `${kind} ${metadata.namespace ?? ""} ${metadata.name}`;

async function printed(world: World, ...args: readonly string[]) {
  const { code, out, err } = await runIn(world, args);
  expect(code).toBe(0);
  return { manifests: parseAllDocuments(out).map((document) => document.toJS() as Manifest), err };
}

/** Every switch of the chart, on. */
const everything = fieldsOf(values)
  .filter(({ type }) => type === "bool")
  .map(({ path }) => `${path.join(".")}=true`);
/** Objects that depend on values other than switches. */
const requested = ["platform=openshift", "priorityClassName=system-node-critical", "resourceQuota.create=always"];
const withPolicy = (version: string) => [
  "--set",
  [
    ...everything,
    ...requested,
    ...["nodeTaint", "nri.require", "namespaceUIDRange"].map((group) => `${group}.admissionPolicy=${version}`),
  ].join(","),
];

/** A cluster that knows some kinds, and has some objects. */
function cluster(kinds: readonly string[], objects: readonly Manifest[], discovery: Partial<Ended> = {}) {
  const asked: string[][] = [];
  const kubectl = (args: readonly string[]): Ended => {
    const [verb, kind = ""] = args.filter((word) => !word.startsWith("-"));
    asked.push(args.filter((word) => !word.startsWith("--request-timeout")));
    if (verb === "api-resources") return { code: 0, out: `pods\n${kinds.join("\n")}\n`, err: "", ...discovery };
    const items = objects.filter((object) => kind.includes(object.kind.toLowerCase().slice(0, -1)));
    return { code: 0, out: JSON.stringify({ items }), err: "" };
  };
  return { asked, world: { programs: { kubectl } } };
}

const ADMISSION = "admissionregistration.k8s.io";
const known = [
  `mutatingadmissionpolicies.${ADMISSION}`,
  `mutatingadmissionpolicybindings.${ADMISSION}`,
  `validatingadmissionpolicies.${ADMISSION}`,
  `validatingadmissionpolicybindings.${ADMISSION}`,
  "podmonitors.monitoring.coreos.com",
  "prometheusrules.monitoring.coreos.com",
];

test.each(MUTATING_POLICY_VERSIONS)(
  "without a flag it names all that any values install, policies of %s too",
  async (version) => {
    const { manifests } = await printed({}, "install-cni", "--cni-namespace", "mesh", ...withPolicy(version));
    const { world } = cluster(known, manifests);
    const removed = (await printed(world, "uninstall-cni", "--cni-namespace", "mesh")).manifests;
    const objects = manifests.filter(({ kind }) => kind !== "Namespace");
    expect(removed.map(names)).toEqual(expect.arrayContaining(objects.map(names)));
    const order = removed.map(({ kind }) => kind);
    const policies = order.filter((kind) => kind.startsWith("MutatingAdmissionPolicy"));
    expect(policies).toHaveLength(6);
    expect(order.lastIndexOf(policies.at(-1)!)).toBeLessThan(order.indexOf("DaemonSet"));
    expect(order).not.toContain("Namespace");
  },
);

test("an API that is down, such as a broken metrics-server's, does not hide our objects", async () => {
  const { manifests } = await printed({}, "install-cni", ...withPolicy("v1"));
  const err = "error: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale\n";
  const { world } = cluster(known, manifests, { code: 1, err });
  const removed = await printed(world, "uninstall-cni");
  const objects = manifests.filter(({ kind }) => kind !== "Namespace");
  expect(removed.manifests.map(names)).toEqual(expect.arrayContaining(objects.map(names)));
  expect(removed.err).toBe("");
  const without = cluster(known, manifests, { code: 1, out: "", err });
  const { code, err: why } = await runIn(without.world, ["uninstall-cni"]);
  expect([code, why]).toEqual([1, expect.stringContaining("unable to retrieve the complete list")]);
});

test("objects of kinds unknown to the cluster are not named", async () => {
  const { asked, world } = cluster(["deployments.apps"], []);
  const { manifests, err } = await printed(world, "uninstall-cni");
  expect(manifests.filter(({ apiVersion }) => /admission|monitoring|policy/.test(apiVersion))).toEqual([]);
  expect([asked, err]).toEqual([[["api-resources", "--output=name"]], ""]);
});

test("existing objects of this installation are named in the cluster's API version", async () => {
  const policy = (name: string): Manifest => ({
    apiVersion: `${ADMISSION}/v1`,
    kind: "MutatingAdmissionPolicy",
    metadata: { name },
  });
  const { asked, world } = cluster(known, [policy("linkerd-cni-node-taint-v1beta1"), policy("other")]);
  const { manifests } = await printed(
    world,
    "uninstall-cni",
    "--cni-namespace",
    "mesh",
    "--context",
    "c",
    "--kubeconfig",
    "k",
  );
  expect(manifests.slice(0, 2)).toEqual([
    policy("linkerd-cni-node-taint-v1beta1"),
    { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "linkerd-cni", namespace: "mesh" } },
  ]);
  expect(asked[1]).toEqual(
    expect.arrayContaining([
      "--context=c",
      "--kubeconfig=k",
      "--namespace=mesh",
      "--selector=linkerd.io/cni-resource=true",
    ]),
  );
});

test("without kubectl it names nothing", async () => {
  expect(await runIn({}, ["uninstall-cni"])).toMatchObject({ code: 1, out: "", err: expect.stringContaining("PATH") });
});

test.each(["linkerd-cni", "linkerd", "kube-system"])(
  "the namespace is not named, since %s may contain other objects",
  async (namespace) => {
    const { manifests } = await printed(cluster(known, []).world, "uninstall-cni", "--cni-namespace", namespace);
    expect(manifests.filter(({ kind }) => kind === "Namespace")).toEqual([]);
  },
);

test.each([
  ["kube-system", 0],
  ["kube-public", 0],
  ["default", 0],
  ["linkerd", 0],
  ["linkerd-cni", 1],
  ["mesh", 1],
])("install-cni piped to kubectl delete: namespace %s", async (namespace, count) => {
  const { manifests } = await printed({}, "install-cni", "--cni-namespace", namespace);
  expect(manifests.filter(({ kind }) => kind === "Namespace")).toHaveLength(count);
});
