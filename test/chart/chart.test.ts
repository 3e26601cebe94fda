import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "../../constructs";
import { byName, chart, documents, helmSuite, type Rendered, run, template, templateRefusal, withValues } from "./helm";

function constructed(props: LinkerdCniProps = {}): readonly Rendered[] {
  const scope = new Chart(new App(), "chart");
  new LinkerdCni(scope, "cni", props).addHelmTest();
  return scope.toJson() as Rendered[];
}

helmSuite("dist/charts/linkerd2-cni with the real helm", () => {
  test("lints strictly", () => {
    expect(run("lint", "--strict", chart)).toContain("0 chart(s) failed");
  });

  test("numbers and booleans set as text keep their types", () => {
    const flags = ["inboundProxyPort=5143", "useWaitFlag=true", "revisionHistoryLimit=3", "privileged=true"];
    const rendered = template(...flags.flatMap((flag) => ["--set-string", flag]));
    const props = { inboundProxyPort: 5143, useWaitFlag: true, revisionHistoryLimit: 3, privileged: true };
    expect(byName(rendered)).toEqual(byName(constructed(props)));
  });

  test("a single port may be set as a number", () => {
    const rendered = template("--set", "ignoreInboundPorts=25");
    expect(byName(rendered)).toEqual(byName(constructed({ ignoreInboundPorts: "25" })));
  });

  /** Values of the command line that values files do not have alike; other values: invariant.test.ts. */
  const taken: readonly (readonly [string, object])[] = [
    ["resources=null", {}],
    ["resources.cpu=null,repairController.resources.memory.limit=null", {}],
    ["tolerations=null", {}],
    ["nodeSelector=null", {}],
    [
      "affinity.podAffinity.a=b,affinity.nodeAffinity.a=b,nri.enabled=true",
      { affinity: { podAffinity: { a: "b" }, nodeAffinity: { a: "b" } }, nri: { enabled: true } },
    ],
    ["inbondProxyPort=1,resourcesPreset=small,global.a=b,affinty=null", {}],
    ["image=null,repairController=null,podLabels=null,imagePullSecrets=null", {}],
    ["updateStrategy=null", {}],
    ["updateStrategy.rollingUpdate=null,updateStrategy.type=OnDelete", { updateStrategy: { type: "OnDelete" } }],
    ["podLabels.a=null,podAnnotations.a=null,commonLabels.a=null,commonLabels.b=c", { commonLabels: { b: "c" } }],
    ["commonAnnotations.a=null,extraVolumes=null,podMonitor.scrapeInterval=null", {}],
    [
      "podMonitor.enabled=true,podMonitor.labels.a=null,podMonitor.labels.b=c",
      { podMonitor: { enabled: true, labels: { b: "c" } } },
    ],
    ["nri=null", {}],
    ["nri.enabled=true,nri.index=null,nri.require=null,nri.socketDir=null", { nri: { enabled: true } }],
    ["platform=null,destCNINetDir=null,destCNIBinDir=null,resourceQuota=null", {}],
    ["image.digest=null", {}],
    ["extraEnv=null,extraObjects=null,terminationGracePeriodSeconds=null", {}],
    ["helmTest=null,proxyUID=65532,proxyGID=65532", { proxyUID: 65532, proxyGID: 65532 }],
    ["proxyGID=-7", {}],
    ["ignoreInboundPorts=25\\,\\, 587\\,", { ignoreInboundPorts: "25,587" }],
    ["partials.global.a=b,cniPluginImage=cr.l5d.io/linkerd/cni-plugin,installNamespace=true", {}],
  ];

  test.each(taken)("takes %s", (flag, props) => {
    expect(byName(template("--set", flag))).toEqual(byName(constructed(props)));
  });

  test("a version may be any number", () => {
    for (const version of [1.7, 1, 20260801]) {
      const rendered = withValues({ image: { version } }, (path) => template("--values", path));
      expect(byName(rendered)).toEqual(byName(constructed({ image: { version: String(version) } })));
    }
  });

  test("values kept from a release of linkerd's chart by --reuse-values render", () => {
    const folder = mkdtempSync(join(tmpdir(), "reused-"));
    try {
      cpSync(chart, folder, { recursive: true });
      // Helm then uses the release's values as the chart's, so new values are missing.
      const given = {
        proxyUID: 2102,
        logLevel: "info",
        partials: { global: {} },
        updateStrategy: { type: "OnDelete" },
      };
      writeFileSync(join(folder, "values.yaml"), JSON.stringify({ ...given, image: { name: "mirror/linkerd-cni" } }));
      const rendered = documents(run("template", "linkerd-cni", folder, "--namespace", "linkerd-cni"));
      const props: LinkerdCniProps = {
        updateStrategy: { type: "OnDelete" },
        image: { name: "mirror/linkerd-cni" },
      };
      expect(byName(rendered)).toEqual(byName(constructed(props)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("the notes name values that the chart does not have, and why or what was meant", () => {
    const folder = mkdtempSync(join(tmpdir(), "notes-"));
    try {
      cpSync(chart, folder, { recursive: true });
      // Helm shows notes only with a cluster.
      const text = readFileSync(join(folder, "templates", "NOTES.txt"), "utf8");
      const template = `{{ define "notes" }}${text}{{ end }}notes: {{ include "notes" . | toJson }}\n`;
      writeFileSync(join(folder, "templates", "notes.yaml"), template);
      const notes = (...flags: readonly string[]) => {
        const [made] = documents(run("template", "x", folder, "--show-only", "templates/notes.yaml", ...flags));
        return String(made?.["notes"]).match(/^NOTE: .*$/gm);
      };
      expect(notes()).toBeNull();
      expect(
        notes(
          "--set",
          "enablePSP=true,partials.global.a=b,cniPluginVersion=v1,pluginToken.onNode=false,repairController.deleteUnvalidated=true",
        ),
      ).toEqual([
        "NOTE: the value repairController.deleteUnvalidated is ignored: pods without a validator are reported, not evicted.",
        "NOTE: the value cniPluginVersion is ignored: image.version is used.",
        "NOTE: the value enablePSP is ignored: Kubernetes 1.25 removed PodSecurityPolicy.",
        "NOTE: the value partials is ignored: values of a library of linkerd's charts.",
        "NOTE: the value pluginToken is ignored: the plugin has no token, because it asks the installer.",
      ]);
      expect(notes("--set", "tolerations=null,affinty=null,global.a=b,enabled=true")).toBeNull();
      expect(notes("--set", "inbondProxyPort=1,nodeselector.a=b,tolerationss[0]=a,nodeAffinty=1,replicas=2")).toEqual([
        "NOTE: the chart has no value inbondProxyPort: did you mean inboundProxyPort?",
        "NOTE: the chart has no value nodeAffinty: did you mean nodeAffinity?",
        "NOTE: the chart has no value nodeselector: did you mean nodeSelector?",
        "NOTE: the chart has no value replicas, which is ignored.",
        "NOTE: the chart has no value tolerationss: did you mean tolerations?",
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  /** Bad values, and what helm's message says about them. That the schema refuses what the constructs do: schema.test.ts. */
  const refused: readonly (readonly [string, string])[] = [
    ["inboundProxyPort=http", "at '/inboundProxyPort': 'http' does not match pattern"],
    ["ignoreInboundPorts=200-100", 'ignoreInboundPorts: "200-100" has 200-100, which is not a port or a range'],
    ["ignoreOutboundPorts=1-70000", 'ignoreOutboundPorts: "1-70000" has 1-70000, which is not a port or a range'],
    ["ignoreOutboundPorts=25\\,http", 'ignoreOutboundPorts: "25,http" has http, which is not a port or a range'],
    ["ignoreOutboundPorts=2 5", 'ignoreOutboundPorts: "2 5" has 2 5, which is not a port or a range'],
    ["portsToRedirect=70000", 'portsToRedirect: "70000" has 70000, which is not a port between 0 and 65535'],
    ["portsToRedirect=80-90", 'portsToRedirect: "80-90" has 80-90, which is not a port between 0 and 65535'],
    ["portsToRedirect=080", 'portsToRedirect: "080" has 080, which is not a port between 0 and 65535'],
    ["ignoreInboundPorts=-1", 'ignoreInboundPorts: "-1" has -1, which is not a port or a range'],
    ["hostNetwork=true,updateStrategy.rollingUpdate.maxSurge=1", "leave maxSurge and maxUnavailable out"],
    ["hostNetwork=true,updateStrategy.rollingUpdate.maxUnavailable=0", "leave maxSurge and maxUnavailable out"],
    ["healthPort=9990,repairController.enabled=true", "healthPort: 9990 is the repair controller's own port"],
    ["nri.enabled=true,iptablesMode=plain", "with nri.enabled set iptablesMode to auto or native"],
    ["proxyUID=0", "at '/proxyUID': minimum: got 0, want 1"],
    ["image.name=cr.l5d.io/linkerd/cni-plugin", 'image.name: "cr.l5d.io/linkerd/cni-plugin" is the image of linkerd'],
    [
      "image.name=ghcr.io/linkerd/cni-plugin",
      "take `image` out of your values, or with --reuse-values set image.name=",
    ],
    ["image.digest=sha256:12", 'image.digest: "sha256:12" is not a digest: sha256: and 64 digits of 0-9 and a-f'],
    ["image.tag=1", "at '/image': additional properties 'tag' not allowed"],
    [
      "updateStrategy.rollingUpdate.maxSurge=1,updateStrategy.rollingUpdate.maxUnavailable=25%",
      "maxSurge and maxUnavailable are both set, and Kubernetes allows only one of them",
    ],
    ["tolerations=x", "at '/tolerations': got string, want array"],
  ];

  test("an AppArmor profile is refused if pods have no field for it", () => {
    const set = ["--set", "appArmorProfile.type=Localhost,appArmorProfile.localhostProfile=cni"];
    expect(templateRefusal(...set, "--kube-version", "v1.29.15-eks-1")).toContain(
      "appArmorProfile: pods have this field from Kubernetes 1.30 on; for this cluster set podAnnotations instead, " +
        "such as container.apparmor.security.beta.kubernetes.io/install-cni: runtime/default",
    );
    const appArmorProfile = { type: "Localhost", localhostProfile: "cni" } as const;
    expect(byName(template(...set, "--kube-version", "v1.30.0-gke.1"))).toEqual(
      byName(constructed({ appArmorProfile })),
    );
  });

  test.each(refused)("refuses %s and names the value", (flag, message) => {
    expect(templateRefusal("--set", flag)).toContain(message);
  });
});
