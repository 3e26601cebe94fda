import { CliCluster, cliMissing } from "../support/cli";
import { suite } from "../support/requirements";

const KINDS = [
  ...["daemonsets", "configmaps", "serviceaccounts", "networkpolicies"],
  ...["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
  ...["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
  ...["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
].join(",");

suite("l5d-cni uninstall-cni, with kubectl and a real API server", cliMissing(), () => {
  let cluster!: CliCluster;

  beforeAll(async () => {
    cluster = await CliCluster.start();
  });
  afterAll(() => cluster?.close());

  const left = async () => {
    const selector = "--selector=linkerd.io/cni-resource=true";
    return (await cluster.kubectl("get", KINDS, "--all-namespaces", selector, "--output=name")).trim();
  };
  const uninstalled = (...flags: readonly string[]) =>
    // No controller ends the namespace here.
    cluster.piped(["uninstall-cni", ...flags], "delete", "--ignore-not-found", "--wait=false", "-f", "-");

  test("without the flags of the installation everything is removed, even the policy that taints new nodes", async () => {
    const values = ["nodeTaint.enabled=true,nodeTaint.admissionPolicy=v1beta1", "grafanaDashboard.enabled=true"];
    const nri = "nri.enabled=true,nri.require.admissionPolicy=v1beta1";
    const flags = [...values, nri, "networkPolicy.enabled=true"].flatMap((value) => ["--set", value]);
    expect(await cluster.piped(["install-cni", ...flags], "apply", "-f", "-")).toMatchObject({ code: 0, err: "" });
    expect((await left()).split("\n")).toHaveLength(17);
    expect(await uninstalled()).toMatchObject({ code: 0 });
    expect(await left()).toBe("");
  });

  test("in a shared namespace only our objects are removed", async () => {
    for (const namespace of ["linkerd", "shared"]) {
      await cluster.kubectl("create", "namespace", namespace);
      await cluster.kubectl("create", "configmap", "theirs", `--namespace=${namespace}`);
      const flag = `--cni-namespace=${namespace}`;
      expect(await cluster.piped(["install-cni", flag], "apply", "-f", "-")).toMatchObject({ code: 0 });
      expect(await uninstalled(flag)).toMatchObject({ code: 0 });
      expect(await left()).toBe("");
      const phase = "--output=jsonpath={.status.phase}";
      expect(await cluster.kubectl("get", "namespace", namespace, phase)).toBe("Active");
      expect(
        await cluster.kubectl("get", "configmap", "theirs", `--namespace=${namespace}`, "--output=name"),
      ).toContain("theirs");
    }
  });

  test("without an installation, kubectl reports no errors", async () => {
    expect(await uninstalled("--cni-namespace=elsewhere")).toMatchObject({ code: 0, out: "", err: "" });
  });
});
