import { readValues } from "../helm/read";
import type { LinkerdCniProps } from "./linkerd-cni";
import { synthesized } from "./manifests.testing";
import { directoriesOf, PLATFORM_NAMES, PLATFORMS } from "./platforms";
import { values } from "./values";

function directories(props: LinkerdCniProps) {
  const { data } = synthesized(props).find(({ kind }) => kind === "ConfigMap") as unknown as {
    data: Record<string, string>;
  };
  return { destCNINetDir: data["dest_cni_net_dir"], destCNIBinDir: data["dest_cni_bin_dir"] };
}

function container(props: LinkerdCniProps) {
  const daemonSet = synthesized(props).find(({ kind }) => kind === "DaemonSet") as unknown as {
    spec: { template: { spec: { containers: { securityContext: object; volumeMounts: { mountPath: string }[] }[] } } };
  };
  return daemonSet.spec.template.spec.containers[0];
}

const quota = (props: LinkerdCniProps) => synthesized(props).find(({ kind }) => kind === "ResourceQuota");

test.each(PLATFORM_NAMES)("%s: its directories, unless others are given", (platform) => {
  const { destCNINetDir, destCNIBinDir } = PLATFORMS[platform];
  expect(directories({ platform })).toEqual({ destCNINetDir, destCNIBinDir });
  expect(directoriesOf(readValues(values, { platform }).values)).toEqual({ destCNINetDir, destCNIBinDir });
  expect(directories({ platform, destCNIBinDir: "/mine" })).toEqual({ destCNINetDir, destCNIBinDir: "/mine" });
  expect(directories({ platform, destCNINetDir: "/mine" })).toEqual({ destCNINetDir: "/mine", destCNIBinDir });
  const mounted = container({ platform })?.volumeMounts.map(({ mountPath }) => mountPath);
  expect(mounted).toEqual(expect.arrayContaining([`/host${destCNIBinDir}`, `/host${destCNINetDir}`]));
});

test("without a platform, the directories of containerd and CRI-O", () => {
  const usual = { destCNINetDir: "/etc/cni/net.d", destCNIBinDir: "/opt/cni/bin" };
  expect(directories({})).toEqual(usual);
  expect(directoriesOf(readValues(values, {}).values)).toEqual(usual);
});

test("the SELinux context is the platform's, unless one is given", () => {
  expect(container({})?.securityContext).not.toHaveProperty("seLinuxOptions");
  expect(container({ platform: "gke" })?.securityContext).not.toHaveProperty("seLinuxOptions");
  expect(container({ platform: "openshift" })?.securityContext).toMatchObject({ seLinuxOptions: { type: "spc_t" } });
  const mine = { type: "mine_t" };
  expect(container({ platform: "openshift", seLinuxOptions: mine })?.securityContext).toMatchObject({
    seLinuxOptions: mine,
  });
});

test("on OpenShift the pods may use the security context constraint", () => {
  const binding = (props: LinkerdCniProps) =>
    synthesized(props).find(({ metadata }) => metadata.name === "linkerd-cni-scc");
  expect(binding({})).toBeUndefined();
  expect(binding({ platform: "openshift", namespace: "mesh" })).toMatchObject({
    kind: "RoleBinding",
    roleRef: { kind: "ClusterRole", name: "system:openshift:scc:privileged" },
    subjects: [{ kind: "ServiceAccount", name: "linkerd-cni", namespace: "mesh" }],
  });
});

test("outside kube-system a ResourceQuota allows pods of a system- priority class in the namespace", () => {
  const critical = { priorityClassName: "system-node-critical" } as const;
  expect(quota(critical)).toMatchObject({
    metadata: { name: "linkerd-cni" },
    spec: {
      hard: { pods: "5000" },
      scopeSelector: {
        matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["system-node-critical"] }],
      },
    },
  });
  expect(quota({ ...critical, resourceQuota: { create: "never" } })).toBeUndefined();
  expect(quota({ ...critical, namespace: "kube-system" })).toBeUndefined();
  expect(quota({ priorityClassName: "mine" })).toBeUndefined();
  expect(quota({ platform: "gke" })).toBeUndefined();
  expect(quota({ priorityClassName: "mine", resourceQuota: { create: "always", pods: 7 } })).toMatchObject({
    spec: { hard: { pods: "7" } },
  });
});

test("a platform without a preset is refused", () => {
  const platform = "openshft" as "openshift";
  expect(() => synthesized({ platform })).toThrow(/platform: "openshft" is not one of "", aks, .*talos/);
});
