import { App, Chart } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { HelmChart } from "../helm/index";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";
import { daemonSet, found, rules } from "./manifests.testing";

test("a resource that is known not to be wanted is not there", () => {
  class Extended extends LinkerdCni {
    addMonitored(): void {
      const when = this.values.podMonitor.enabled;
      this.add("extra", k8s.KubeConfigMap.GVK, { when, metadata: { name: "extra" } });
    }
  }
  const made = (props: LinkerdCniProps, chart: Chart = new Chart(new App(), "chart")) => {
    new Extended(chart, "cni", props).addMonitored();
    return JSON.stringify(chart.toJson()).includes('"name":"extra"');
  };
  expect([made({}), made({ podMonitor: { enabled: true } })]).toEqual([false, true]);
  expect(made({ podMonitor: { enabled: false } }, new HelmChart(new App(), "chart"))).toBe(false);
});

test("Events about pods are the installer's to create, on request only", () => {
  expect(rules({})).not.toContain("events");
  expect(daemonSet({})).not.toContain("POD_EVENTS");
  expect(rules({ podEvents: true })).toContain('"resources":["events"],"verbs":["create"]');
  expect(daemonSet({ podEvents: true })).toContain('{"name":"POD_EVENTS","value":"true"}');
});

test("Events are the repair controller's to create and not to read, on request only", () => {
  const repair = rules({ repairController: { enabled: true } });
  expect(repair).toContain('"resources":["events"],"verbs":["create"]');
  expect(repair).not.toContain('"resources":["events"],"verbs":["list"]');
});

test("the plugin is left out of the node's CNI configuration on request only", () => {
  expect(daemonSet({})).not.toContain("CHAINED");
  expect(daemonSet({ chained: false })).toContain('{"name":"CHAINED","value":"false"}');
});

test("without a health port there is nothing to probe, to open or to scrape", () => {
  const off: LinkerdCniProps = { healthPort: 0, networkPolicy: { enabled: true }, podMonitor: { enabled: true } };
  expect(daemonSet(off)).not.toMatch(/Probe|"ports"/);
  expect(found("PodMonitor", off)).toBeUndefined();
  expect(found("NetworkPolicy", off)).toMatchObject({ spec: { policyTypes: ["Ingress"] } });
  expect(found("NetworkPolicy", off)).not.toHaveProperty("spec.ingress");
  const repaired = { ...off, repairController: { enabled: true } };
  expect(daemonSet(repaired)).toContain('"--installer-ready="');
  expect(found("NetworkPolicy", repaired)).toMatchObject({ spec: { ingress: [{ ports: [{ port: 9990 }] }] } });
  expect(found("PodMonitor", repaired)).toMatchObject({ spec: { podMetricsEndpoints: [{ port: "repair-admin" }] } });
});

test("what a stopping installer leaves is its own decision unless the values say otherwise", () => {
  expect(daemonSet({})).not.toContain("UNINSTALL_ON_STOP");
  expect(daemonSet({ uninstallOnStop: "never" })).toContain('{"name":"UNINSTALL_ON_STOP","value":"never"}');
});
