import { App, Chart } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { HelmChart } from "../helm/index";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";
import { daemonSet, found, rules, synthesized } from "./manifests.testing";

test("a disabled resource is absent", () => {
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

test("the installer may create Events about pods only if enabled", () => {
  expect(rules({})).not.toContain("events");
  expect(daemonSet({})).not.toContain("NRI_EVENTS");
  expect(rules({ nri: { enabled: true } })).toContain('"resources":["events"],"verbs":["create"]');
  expect(JSON.stringify(synthesized({ nri: { enabled: true } }))).toContain('{"name":"NRI_EVENTS","value":"true"}');
  expect(rules({ podEvents: true } as LinkerdCniProps)).toBe(rules({}));
});

test("the repair controller may create Events, not read them, and only if enabled", () => {
  const repair = rules({ repairController: { enabled: true } });
  expect(repair).toContain('"resources":["events"],"verbs":["create"]');
  expect(repair).not.toContain('"resources":["events"],"verbs":["list"]');
});

test("the plugin is left out of the node's CNI configuration only if chained is false", () => {
  expect(daemonSet({})).not.toContain("CHAINED");
  expect(daemonSet({ chained: false })).toContain('{"name":"CHAINED","value":"false"}');
});

test("without a health port there are no probes, open ports or scraped endpoints", () => {
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

test("by default the stopping installer decides what it leaves", () => {
  expect(daemonSet({})).not.toContain("UNINSTALL_ON_STOP");
  expect(daemonSet({ uninstallOnStop: "never" })).toContain('{"name":"UNINSTALL_ON_STOP","value":"never"}');
});
