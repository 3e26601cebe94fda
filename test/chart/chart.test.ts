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

  /** Bad values, and what helm's message says about them. */
  const refused: readonly (readonly [string, string])[] = [
    ["inboundProxyPort=http", "at '/inboundProxyPort': 'http' does not match pattern"],
    ["inboundProxyPort=70000", "at '/inboundProxyPort': maximum: got 70,000, want 65,535"],
    ["outboundProxyPort=0", "at '/outboundProxyPort': minimum: got 0, want 1"],
    ["ignoreInboundPorts=200-100", "ignoreInboundPorts: 200-100 is not a port or a range low-high between 1 and 65535"],
    ["ignoreOutboundPorts=1-70000", "ignoreOutboundPorts: 1-70000 is not a port or a range low-high"],
    ["ignoreOutboundPorts=http", "at '/ignoreOutboundPorts': 'http' does not match pattern"],
    ["portsToRedirect=70000", "portsToRedirect: 70000 is not a port"],
    ["portsToRedirect=80-90", "at '/portsToRedirect': '80-90' does not match pattern"],
    ["healthPort=9990,repairController.enabled=true", "healthPort: 9990 is the repair controller's own port"],
    ["proxyUID=-1", "at '/proxyUID': minimum: got -1, want 0"],
    ["proxyGID=-2", "at '/proxyGID': minimum: got -2, want -1"],
    ["logLevel=loud", "at '/logLevel': value must be one of 'trace', 'debug', 'info', 'warn', 'error'"],
    ["logLevel=null", "missing property 'logLevel'"],
    ["iptablesMode=bpf", "at '/iptablesMode': value must be one of 'auto', 'native', 'nft', 'legacy', 'plain'"],
    ["destCNIBinDir=opt", "at '/destCNIBinDir': 'opt' does not match pattern '^\\\\/"],
    ["useWaitFlag=maybe", "at '/useWaitFlag': value must be one of true, false, 'true', 'false'"],
    ["image.pullPolicy=Sometimes", "at '/image/pullPolicy': value must be one of 'IfNotPresent', 'Always', 'Never'"],
    ["image.version=", "at '/image/version': minLength: got 0, want 1"],
    ["image.tag=1", "at '/image': additional properties 'tag' not allowed"],
    ["inbondProxyPort=1", "additional properties 'inbondProxyPort' not allowed"],
    ["tolerations[0].operator=Any", "at '/tolerations/0/operator': value must be one of 'Exists', 'Equal'"],
    ["tolerations=x", "at '/tolerations': got string, want array"],
    ["podLabels.a=1", "at '/podLabels/a': got number, want string"],
    ["resources.cpu.limit=many", "at '/resources/cpu/limit'"],
    ["updateStrategy.type=Recreate", "at '/updateStrategy/type': value must be one of 'RollingUpdate', 'OnDelete'"],
    ["updateStrategy.rollingUpdate.maxUnavailable=half", "at '/updateStrategy/rollingUpdate/maxUnavailable'"],
    ["updateStrategy.rollingUpdate.maxUnavailable=-1", "at '/updateStrategy/rollingUpdate/maxUnavailable': minimum"],
    ["extraInitContainers[0].name=a", "at '/extraInitContainers/0': missing property 'image'"],
  ];

  test.each(refused)("refuses %s and names the value", (flag, message) => {
    expect(templateRefusal("--set", flag)).toContain(message);
  });
});
