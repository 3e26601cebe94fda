/** Calls and the answers that every verb must give: one table, run against the modules and against the executable. */

export const NETNS = "/run/netns/pod";
export const environment = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c1",
  CNI_NETNS: NETNS,
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=cart-1;K8S_POD_INFRA_CONTAINER_ID=x",
};
export const prevResult = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "eth0", sandbox: NETNS }],
  ips: [{ address: "10.1.1.2/24", interface: 0 }],
  routes: [{ dst: "0.0.0.0/0", table: 0 }],
};
/** The directory of the installer's socket, which a test's own replaces. */
export const runDir = "/run/linkerd-cni-test";
export const config = {
  cniVersion: "1.0.0",
  name: "pods",
  type: "linkerd-cni",
  kubernetes: { kubeconfig: "" },
  "run-dir": runDir,
  prevResult,
};

type Failure = readonly [title: string, env: Record<string, string>, stdin: unknown, code: number, message: RegExp];

const without = (name: string) => Object.fromEntries(Object.entries(environment).filter(([key]) => key !== name));
/** Failing calls, each with the error's code and a pattern of its message. */
export const failures: readonly Failure[] = [
  ["malformed standard input", environment, "{", 6, /standard input/],
  ["empty standard input", environment, "", 6, /standard input/],
  ["trailing data", environment, "{}{}", 6, /standard input/],
  ["a byte order mark", environment, `\ufeff${JSON.stringify(config)}`, 6, /standard input/],
  ["a list", environment, [], 6, /not a JSON object/],
  ["null", environment, "null", 7, /null/],
  ["a name that is not a string", environment, { ...config, name: 1 }, 6, /name/],
  ["no name", environment, { ...config, name: "" }, 7, /no name/],
  ["a malformed name", environment, { ...config, name: "a/b" }, 7, /name/],
  ["a version that is not a string", environment, { ...config, cniVersion: 1 }, 6, /cniVersion/],
  ["an unknown version", environment, { ...config, cniVersion: "9.0.0" }, 1, /9\.0\.0.*1\.1\.0/],
  ["an unknown verb", { ...environment, CNI_COMMAND: "add" }, config, 4, /CNI_COMMAND "add"/],
  ["an unknown verb with malformed input", { ...environment, CNI_COMMAND: "add" }, "{", 6, /standard input/],
  ["no container id", without("CNI_CONTAINERID"), config, 4, /CNI_CONTAINERID/],
  ["a container id with a newline", { ...environment, CNI_CONTAINERID: "a\n" }, config, 4, /CNI_CONTAINERID/],
  ["a long interface name", { ...environment, CNI_IFNAME: "a".repeat(16) }, config, 4, /CNI_IFNAME/],
  ["an interface name with a colon", { ...environment, CNI_IFNAME: "a:b" }, config, 4, /CNI_IFNAME/],
  ["the interface name ..", { ...environment, CNI_IFNAME: ".." }, config, 4, /CNI_IFNAME/],
  ["a namespace that is a directory", { ...environment, CNI_NETNS: "/etc" }, config, 4, /CNI_NETNS: \/etc is not/],
  ["the plugin's own namespace", { ...environment, CNI_NETNS: "/proc/self/ns/net" }, config, 4, /CNI_NETNS/],
  ["an invalid pod name", { ...environment, CNI_ARGS: "K8S_POD_NAMESPACE=..;K8S_POD_NAME=a" }, config, 4, /CNI_ARGS/],
  ["a wrong field", environment, { ...config, linkerd: { "proxy-uid": "x" } }, 7, /linkerd\.proxy-uid: "x"/],
  ["a wrong port", environment, { ...config, linkerd: { "inbound-ports-to-ignore": ["x"] } }, 7, /"x" is not a port/],
  ["an invalid previous result", environment, { ...config, prevResult: 1 }, 7, /prevResult/],
  [
    "CHECK without a previous result",
    { ...environment, CNI_COMMAND: "CHECK" },
    { ...config, prevResult: null },
    7,
    /prevResult/,
  ],
  [
    "CHECK of an old version",
    { ...environment, CNI_COMMAND: "CHECK" },
    { ...config, cniVersion: "0.3.1" },
    1,
    /0\.4\.0/,
  ],
  ["GC of an old version", { ...environment, CNI_COMMAND: "GC" }, config, 1, /1\.1\.0/],
];
