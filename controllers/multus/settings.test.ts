import { readSettings } from "./settings";

const environment = { POD_NAMESPACE: "linkerd-cni", POD_NAME: "linkerd-multus-1", KUBERNETES_SERVICE_HOST: "10.0.0.1" };
const read = (...args: string[]) => readSettings(args, environment);

test("defaults equal those of linkerd's operator", () => {
  expect(read()).toEqual({
    logLevel: "info",
    logFormat: "plain",
    cniNamespace: "linkerd-cni",
    linkerdNamespace: "linkerd",
    cniKubeconfig: "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig",
    uidRangeAnnotation: "openshift.io/sa.scc.uid-range",
    proxyUidOffset: 2102,
    webhook: {
      port: 9443,
      service: "linkerd-multus-webhook",
      configuration: "linkerd-multus",
      certificates: "self",
      certificateSecret: "linkerd-multus-webhook-tls",
      certificateDir: "/tls",
      certificateValidityMs: 7_776_000_000,
    },
    metrics: { port: 8080 },
    health: { port: 8081 },
    leaderElect: true,
    rate: { perSecond: 20, burst: 40 },
    podNamespace: "linkerd-cni",
    podName: "linkerd-multus-1",
    cluster: {
      host: "10.0.0.1",
      port: 443,
      serviceAccountDir: "/var/run/secrets/kubernetes.io/serviceaccount",
    },
  });
});

test.each([
  [["-cni-kubeconfig", "relative"], '--cni-kubeconfig "relative" is not an absolute path'],
  [["-webhook-port", "70000"], '--webhook-port "70000" is not a port'],
  [["-linkerd-proxy-uid-offset", "-5"], '--linkerd-proxy-uid-offset "-5" is not a whole number from 0'],
  [["-leader-elect=maybe"], '-leader-elect "maybe" is not true or false'],
  [["-requests-per-second=0"], '--requests-per-second "0" is not a number above 0'],
  [["-webhook-certificates=own"], '--webhook-certificates "own" is not one of self, mounted'],
  [["-webhook-port"], "--webhook-port has no value: write --webhook-port=VALUE"],
  [["multus"], '"multus" is not a flag: flags are --name value or --name=value'],
  [["--"], '"--" is not a flag: flags are --name value or --name=value'],
  [["-toString", "x"], "--toString is not known; known are --cni-namespace, --linkerd-namespace, "],
])("%j is refused", (args, problem) => {
  expect(() => read(...args)).toThrow(problem);
});

test("all problems are reported at once", () => {
  const args = ["-nonsense", "value", "-webhook-port=x", "-log-level=loud"];
  const message =
    /^--nonsense is not known; .*; --log-level "loud" .*; --webhook-port "x" .*; POD_NAMESPACE is not set: /;
  expect(() => readSettings(args, { ...environment, POD_NAMESPACE: "" })).toThrow(message);
});
