import { App, Chart } from "cdk8s";
import { HelmChart, orElse, ref } from "../helm/index";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";

const make = (props: unknown) => new LinkerdCni(new Chart(new App(), "chart"), "cni", props as LinkerdCniProps);

/** Synthesizes, which reports problems. */
function synthesize(props: unknown) {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", props as LinkerdCniProps);
  return chart.toJson();
}

/** Refused values, with their messages. */
const refused: readonly (readonly [Readonly<Record<string, unknown>>, string])[] = [
  [{ inboundProxyPort: 0 }, "inboundProxyPort: 0 is less than 1"],
  [{ inboundProxyPort: 65536 }, "inboundProxyPort: 65536 is more than 65535"],
  [{ inboundProxyPort: "http" }, 'inboundProxyPort: "http" is not of type number'],
  [{ inboundProxyPort: 1.5 }, "inboundProxyPort: 1.5 is not a whole number"],
  [{ ignoreInboundPorts: "200-100" }, 'ignoreInboundPorts: "200-100" has 200-100, which is not a port or a range'],
  [{ ignoreOutboundPorts: "1-70000" }, 'ignoreOutboundPorts: "1-70000" has 1-70000, which is not a port or a range'],
  [{ ignoreOutboundPorts: "25,http" }, 'ignoreOutboundPorts: "25,http" has http, which is not a port or a range'],
  [{ ignoreOutboundPorts: "2 5" }, 'ignoreOutboundPorts: "2 5" has 2 5, which is not a port or a range'],
  [{ ignoreOutboundPorts: "1-2-3" }, 'ignoreOutboundPorts: "1-2-3" has 1-2-3, which is not a port or a range'],
  [{ portsToRedirect: "80-90" }, 'portsToRedirect: "80-90" has 80-90, which is not a port between 0 and 65535'],
  [{ portsToRedirect: 70000 }, "portsToRedirect: 70000 has 70000, which is not a port between 0 and 65535"],
  [{ proxyUID: -1 }, "proxyUID: -1 is less than 1"],
  [{ proxyUID: 0 }, "proxyUID: 0 is less than 1"],
  [{ logLevel: "verbose" }, 'logLevel: "verbose" is not one of trace, debug, info, warn, error, warning, fatal, panic'],
  [
    { image: { name: "cr.l5d.io/linkerd/cni-plugin", version: "v1.6.2" } },
    'image.name: "cr.l5d.io/linkerd/cni-plugin" is the image of linkerd\'s own chart',
  ],
  [{ image: { name: "ghcr.io/linkerd/cni-plugin" } }, "take `image` out of your values"],
  [
    { image: { digest: "sha256:12" } },
    'image.digest: "sha256:12" is not a digest: sha256: and 64 digits of 0-9 and a-f',
  ],
  [{ destCNIBinDir: "opt/cni/bin" }, 'destCNIBinDir: "opt/cni/bin" is not an absolute path'],
  [{ useWaitFlag: "yes" }, 'useWaitFlag: "yes" is not of type boolean'],
  [{ image: { pullPolicy: "Sometimes" } }, 'image.pullPolicy: "Sometimes" is not one of IfNotPresent, Always, Never'],
  [{ tolerations: [{ operator: "Any" }] }, 'tolerations.0.operator: "Any" is not one of Exists, Equal'],
  [{ nodeTaint: { admissionPolicy: "v2" } }, 'nodeTaint.admissionPolicy: "v2" is not one of "", v1beta1, v1'],
  [{ healthPort: 9990, repairController: { enabled: true } }, "healthPort: 9990 is the repair controller's own port"],
  [{ healthPort: "9990", repairController: { enabled: "true" } }, "is the repair controller's own port"],
  [{ podLabels: { a: 1 } }, "podLabels.a: 1 is not of type string"],
  [{ resources: { cpu: { limit: "many" } } }, 'resources.cpu.limit: "many" is not a quantity such as 100m'],
  [{ updateStrategy: { rollingUpdate: { maxUnavailable: "half" } } }, '"half" is not a number or a percentage'],
  [
    { updateStrategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: "0%" } } },
    "updateStrategy.rollingUpdate: maxSurge and maxUnavailable are both 0",
  ],
  [{ podLabels: { team: "my team" } }, 'podLabels.team: "my team" is not a label\'s value: up to 63 letters'],
  [{ commonLabels: { "my team": "x" } }, "commonLabels.my team: is not a label's name, such as team"],
  [{ podMonitor: { scrapeInterval: "30" } }, 'podMonitor.scrapeInterval: "30" is not a duration such as 30s or 1m30s'],
  [{ podMonitor: { scrapeTimeout: "1s1m" } }, 'podMonitor.scrapeTimeout: "1s1m" is not a duration such as 30s'],
  [{ extraVolumes: [{ emptyDir: {} }] }, "extraVolumes.0.name"],
  [{ commonAnnotations: { wave: 1 } }, "commonAnnotations.wave: 1 is not of type string"],
  [{ priorityClassName: "node critical" }, 'priorityClassName: "node critical" is not the name of a priority class'],
  [{ ignoreOutboundPorts: [25, 587] }, 'ignoreOutboundPorts: [25,587] is a list: write "25,587"'],
  [{ logLevel: ["info"] }, 'logLevel: ["info"] is not one of'],
  [{ inboundPort: 1 }, "inboundPort is not a value"],
  [{ destCniBinDir: "/x" }, "destCniBinDir is not a value: did you mean destCNIBinDir?"],
  [{ image: { tag: "1" } }, "image.tag is not a value"],
  [{ repairController: { enable: true } }, "did you mean repairController.enabled?"],
];

test.each(refused)("%j is refused", (props, message) => {
  expect(() => synthesize(props)).toThrow(message);
});

test("every problem is reported at once", () => {
  expect(() => synthesize({ logLevel: "loud", proxyUID: -1, imag: {} })).toThrow(
    /logLevel.*\n.*proxyUID.*|proxyUID.*\n.*logLevel.*/,
  );
  expect(() => synthesize({ logLevel: "loud", imag: {} })).toThrow("did you mean image?");
});

test("every problem of every construct is reported at once, and none before synthesis", () => {
  const app = new App();
  const chart = new Chart(app, "chart");
  new LinkerdCni(chart, "one", { logLevel: "loud" } as unknown as LinkerdCniProps);
  new LinkerdCni(chart, "two", { namespace: "No", healthPort: 9990, repairController: { enabled: true } });
  new LinkerdCni(chart, "three", {
    healthPort: 9990,
    repairController: { enabled: true },
    hostNetwork: true,
    ignoreInboundPorts: "25",
  });
  let said = "";
  try {
    app.synthYaml();
  } catch (error) {
    said = String(error);
  }
  expect(said).toContain('[chart/one] logLevel: "loud" is not one of');
  expect(said).toContain('[chart/two] namespace: "No" is not a name for one');
  expect(said).toContain("[chart/three] healthPort: 9990 is the repair controller's own port");
});

test("numbers and booleans may come as text", () => {
  const { values } = make({ inboundProxyPort: "5143", useWaitFlag: "true", portsToRedirect: 80, proxyGID: "-5" });
  expect(values).toMatchObject({ inboundProxyPort: 5143, useWaitFlag: true, portsToRedirect: "80", proxyGID: -5 });
  expect(make({ image: { version: 1.7 } }).values.image.version).toBe("1.7");
});

test("null removes a value: its default applies", () => {
  const gone = { resources: null, tolerations: null, podLabels: null, logLevel: null, nodeAffinity: null };
  const parts = { updateStrategy: { type: "OnDelete", rollingUpdate: null }, image: { version: null } };
  const { values } = make({ ...gone, ...parts });
  const { resources, tolerations, podLabels, logLevel, image } = make({}).values;
  expect(values).toMatchObject({ resources, tolerations, podLabels, logLevel, image });
  expect(values.updateStrategy).toMatchObject({ type: "OnDelete" });
  expect(values.nodeAffinity).toBeUndefined();
});

test("values of older linkerd charts are ignored", () => {
  expect(make({ partials: { global: {} }, cniPluginVersion: "v1" }).values).toEqual(make({}).values);
  expect(() => synthesize({ partial: {} })).toThrow("partial is not a value");
});

test("expressions are for Helm charts", () => {
  const logLevel = ref<"info">("string", "Values", "logLevel");
  expect(() => make({ logLevel })).toThrow("HelmChart");
});

test("in a Helm chart, given values are fixed and the others are references", () => {
  const chart = new HelmChart(new App(), "chart");
  const cni = new LinkerdCni(chart, "cni", { inboundProxyPort: 5143, image: { name: "registry/cni" } });
  expect(cni.values.inboundProxyPort).toBe(5143);
  expect(cni.values.image.name).toBe("registry/cni");
  const pullPolicy = ref<string>("string", "Values", "image", "pullPolicy");
  expect(cni.values.image.pullPolicy).toEqual(orElse<string>(pullPolicy, "IfNotPresent"));
});

test("an own chart keeps the values in a group", () => {
  const cni = new LinkerdCni(new HelmChart(new App(), "chart"), "cni", { valuesPath: ["Values", "cni"] });
  const pullPolicy = ref<string>("string", "Values", "cni", "image", "pullPolicy");
  expect(cni.values.image.pullPolicy).toEqual(orElse<string>(pullPolicy, "IfNotPresent"));
});
