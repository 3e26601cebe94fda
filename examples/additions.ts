import { App, Chart } from "cdk8s";
import { LinkerdCni } from "linkerd-cni-cdk8s";

const app = new App();
const chart = new Chart(app, "linkerd-cni", { namespace: "linkerd-cni" });

// An annotation of the pods is a value.
const cni = new LinkerdCni(chart, "cni", { podAnnotations: { "example.com/team": "platform" } });

// A sidecar and an init container with a volume, and a read permission.
cni.addContainer({
  name: "audit",
  image: "ghcr.io/example/audit:1",
  volumeMounts: [{ name: "log", mountPath: "/log" }],
});
cni.addInitContainer({
  name: "wait",
  image: "ghcr.io/example/wait:1",
  volumeMounts: [{ name: "log", mountPath: "/log" }],
});
cni.addVolume({ name: "log", hostPath: { path: "/var/log/pods" } });
cni.addRule({ apiGroups: [""], resources: ["events"], verbs: ["list"] });

// A variable of the installer and the repair controller, and of the NRI plugin.
cni.addEnv({ name: "KUBERNETES_SERVICE_HOST", value: "api.example.com" });
cni.nri.addEnv({ name: "KUBERNETES_SERVICE_HOST", value: "api.example.com" });

// Resources are members: here an annotation of the DaemonSet.
cni.daemonSet.metadata.addAnnotation("example.com/owner", "platform");

/** In a subclass the same parts are fields, which can be spread. */
class StrictCni extends LinkerdCni {
  protected override podSpec() {
    const spec = super.podSpec();
    const debug = { name: "debug", image: "ghcr.io/example/debug:1" };
    return { ...spec, dnsPolicy: "Default", containers: [...spec.containers, debug] };
  }

  protected override clusterRoleRules() {
    return [...super.clusterRoleRules(), { apiGroups: [""], resources: ["events"], verbs: ["list"] }];
  }
}
new StrictCni(new Chart(app, "strict", { namespace: "linkerd-cni" }), "cni");

process.stdout.write(app.synthYaml());
