import { App, Chart, JsonPatch } from "cdk8s";
import { LinkerdCni, LinkerdNamespace } from "linkerd-cni-cdk8s";

/** The platform team's plugin: the same for all clusters, and stricter than the default. */
class PlatformCni extends LinkerdCni {
  /** Every change of the plugin's configuration in one place. */
  protected override stanza() {
    return { ...super.stanza(), "strict-status": true };
  }
}

const app = new App();
const chart = new Chart(app, "linkerd-cni");
new LinkerdNamespace(chart, "namespace", { name: "platform-cni" });

const cni = new PlatformCni(chart, "cni", {
  namespace: "platform-cni",
  priorityClassName: "system-node-critical",
  ignoreOutboundPorts: "3306,5432",
  rbac: { minimal: true },
  commonLabels: { team: "platform" },
});

// Configuration for your own plugin, beside linkerd's.
cni.addStanza({ "example.com/audit": { enabled: true } });

// A patch for everything else.
cni.daemonSet.addJsonPatch(JsonPatch.add("/spec/template/spec/dnsPolicy", "Default"));

process.stdout.write(app.synthYaml());
