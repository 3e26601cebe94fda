import { clusterSuite } from "./suite";

/** Values of every kind; the API server looks at each object that they lead to. */
const matrix: Readonly<Record<string, readonly string[]>> = {
  "the defaults": [],
  "both address families, other directories": [
    "--set",
    "disableIPv6=false,destCNINetDir=/var/snap/net d,destCNIBinDir=/var/lib/cni/bin",
  ],
  "numbers and booleans as text": ["--set-string", "proxyUID=3000,proxyGID=3001,useWaitFlag=true,privileged=true"],
  "ports and ranges": ["--set-string", "ignoreInboundPorts=25\\,8000-8100,ignoreOutboundPorts=3306,portsToRedirect=80"],
  "repair, taint and Events": ["--set", "repairController.enabled=true,nodeTaint.enabled=true"],
  "the NRI plugin": ["--set", "nri.enabled=true,chained=false,networkPolicy.enabled=true,podLookup=annotations"],
  "a dashboard": ["--set", "grafanaDashboard.enabled=true"],
  "an AppArmor profile": ["--set", "appArmorProfile.type=Localhost,appArmorProfile.localhostProfile=cni"],
  "less of everything": ["--set", "rbac.minimal=true,networkPolicy.enabled=true,pluginLog=false"],
  "values for OpenShift": ["--values", "examples/openshift-values.yaml"],
  "values for k3s": ["--values", "examples/k3s-values.yaml"],
};

const multus: Readonly<Record<string, readonly string[]>> = {
  "the defaults": [],
  "more of everything": ["--set", "replicaCount=3,networkPolicy.enabled=true,podDisruptionBudget.maxUnavailable=50%"],
  "selectors and spreading of one's own": [
    "--set-json",
    'webhook.objectSelector={"matchLabels":{"a":"b"}}',
    "--set-json",
    'topologySpreadConstraints=[{"topologyKey":"rack","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]',
  ],
  "values for OpenShift": ["--values", "examples/openshift-multus/linkerd-multus-values.yaml"],
};

clusterSuite("helm install --dry-run=server, by a real API server", (cluster) => {
  test.each(Object.entries(matrix))("%s", async (_, options) => {
    const where = ["linkerd-cni", "-n", "kube-system", "dist/charts/linkerd2-cni"];
    expect(await cluster.helm("install", "--dry-run=server", ...where, ...options)).toContain("kind: DaemonSet");
  });

  test.each(Object.entries(multus))("linkerd-multus: %s", async (_, options) => {
    const where = ["linkerd-multus", "-n", "kube-system", "dist/charts/linkerd-multus"];
    const said = await cluster.helm("install", "--dry-run=server", ...where, ...options);
    expect(said).toContain("kind: MutatingWebhookConfiguration");
    expect(said).toContain("WARNING: this cluster has no NetworkAttachmentDefinitions");
  });
});
