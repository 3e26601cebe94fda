import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "../../constructs";
import { byName, chart, helm, type Rendered, run, template, templateRefusal, withValues } from "./helm";

const suite = helm === undefined ? describe.skip : describe;
const title = helm === undefined ? " (no helm: set HELM or put it on PATH)" : "";

function constructed(props: LinkerdCniProps = {}): readonly Rendered[] {
  const scope = new Chart(new App(), "chart");
  new LinkerdCni(scope, "cni", props);
  return scope.toJson() as Rendered[];
}

suite(`dist/charts/linkerd2-cni with the real helm${title}`, () => {
  test("lints strictly", () => {
    expect(run("lint", "--strict", chart)).toContain("0 chart(s) failed");
  });

  test("renders by default what the constructs make", () => {
    expect(byName(template())).toEqual(byName(constructed()));
  });

  test("renders with changed values what the constructs make", () => {
    const changed: LinkerdCniProps = {
      inboundProxyPort: 5143,
      proxyGID: 2103,
      ignoreInboundPorts: "25, 8000-8100",
      ignoreOutboundPorts: "3306",
      portsToRedirect: "80,443",
      destCNIBinDir: '/opt/my "cni"/bün',
      destCNINetDir: '/opt/my "cni"/bün',
      disableIPv6: false,
      enablePSP: true,
      privileged: true,
      tolerations: [],
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["a"] }] }],
        },
      },
      imagePullSecrets: [{ name: "registry" }],
      extraInitContainers: [{ name: "wait", image: "busybox", args: ["1"] }],
      podLabels: { team: "mesh", empty: "" },
      commonLabels: { team: "platform", empty: "not" },
      repairController: { enabled: true, logFormat: "json", resources: { cpu: { limit: "1" } } },
      resources: { memory: { limit: "64Mi", request: 1000000 } },
      updateStrategy: { rollingUpdate: { maxUnavailable: "25%" } },
      priorityClassName: "system-node-critical",
    };
    const rendered = withValues(changed, (path) => template("--values", path));
    expect(byName(rendered)).toEqual(byName(constructed(changed)));
  });

  test("numbers and booleans that are set as text arrive with their types", () => {
    const flags = ["inboundProxyPort=5143", "useWaitFlag=true", "revisionHistoryLimit=3", "privileged=true"];
    const rendered = template(...flags.flatMap((flag) => ["--set-string", flag]));
    const props = { inboundProxyPort: 5143, useWaitFlag: true, revisionHistoryLimit: 3, privileged: true };
    expect(byName(rendered)).toEqual(byName(constructed(props)));
  });

  test("a single port may be set as a number", () => {
    const rendered = template("--set", "ignoreInboundPorts=25");
    expect(byName(rendered)).toEqual(byName(constructed({ ignoreInboundPorts: "25" })));
  });

  const refused: readonly (readonly [string, string])[] = [
    ["inboundProxyPort=http", "inboundProxyPort"],
    ["inboundProxyPort=70000", "inboundProxyPort"],
    ["ignoreInboundPorts=200-100", "ignoreInboundPorts: 200-100 is not a port or a range low-high"],
    ["portsToRedirect=70000", "portsToRedirect: 70000 is not a port"],
    ["logLevel=loud", "logLevel"],
    ["destCNIBinDir=opt", "destCNIBinDir"],
    ["inbondProxyPort=1", "inbondProxyPort"],
    ["image.tag=1", "tag"],
    ["logLevel=null", "logLevel"],
  ];

  test.each(refused)("refuses %s and names the value", (flag, message) => {
    expect(templateRefusal("--set", flag)).toContain(message);
  });
});
