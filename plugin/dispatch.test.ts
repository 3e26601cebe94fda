import { CURRENT_VERSION, VERSIONS } from "../cni/versions";
import { type ApiResponse, ApiUnreachable } from "../kubernetes/client";
import type { World } from "./call";
import { dispatch } from "./dispatch";
import { FakeKernel } from "./netlink/fake";

const NETNS = "/run/netns/pod";
const environment = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c1",
  CNI_NETNS: NETNS,
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=cart-1;K8S_POD_INFRA_CONTAINER_ID=x",
};
const prevResult = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "eth0", sandbox: NETNS }],
  ips: [{ address: "10.1.1.2/24", interface: 0 }],
  routes: [{ dst: "0.0.0.0/0", table: 0 }],
};
const kubeconfig = `${__dirname}/../kubernetes/goldens/kubeconfig.json`;
const config = { cniVersion: "1.0.0", name: "pods", type: "linkerd-cni", kubernetes: { kubeconfig }, prevResult };

type Api = (path: string) => ApiResponse;
const meshed: Api = () => ({
  status: 200,
  body: JSON.stringify({
    metadata: { annotations: { "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1" } },
    spec: { containers: [{ name: "app" }, { name: "linkerd-proxy" }] },
  }),
});

function makeWorld(api: Api = meshed) {
  const kernel = new FakeKernel([NETNS]);
  const requests: string[] = [];
  const log: string[] = [];
  const world: World = {
    kernel,
    connect: () => async (request) => {
      requests.push(request.path);
      return api(request.path);
    },
    warn: (line) => log.push(line),
    identify: (path) => (path === "/proc/self/ns/net" ? "4:1" : `4:${path}`),
  };
  return { kernel, requests, log, world };
}

async function call(env: Record<string, string>, stdin: unknown, made = makeWorld()) {
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  const outcome = await dispatch(env, () => text, made.world);
  return { ...outcome, document: outcome.stdout === "" ? undefined : JSON.parse(outcome.stdout), ...made };
}

describe("a call that cannot be served", () => {
  const without = (name: string) => Object.fromEntries(Object.entries(environment).filter(([key]) => key !== name));
  const cases: [string, Record<string, string>, unknown, number, RegExp][] = [
    ["malformed standard input", environment, "{", 6, /standard input/],
    ["empty standard input", environment, "", 6, /standard input/],
    ["trailing data", environment, "{}{}", 6, /standard input/],
    ["a byte order mark", environment, `\ufeff${JSON.stringify(config)}`, 6, /standard input/],
    ["a list", environment, [], 6, /not a JSON object/],
    ["null", environment, "null", 7, /null/],
    ["a name that is no string", environment, { ...config, name: 1 }, 6, /name/],
    ["no name", environment, { ...config, name: "" }, 7, /no name/],
    ["a malformed name", environment, { ...config, name: "a/b" }, 7, /name/],
    ["a version that is no string", environment, { ...config, cniVersion: 1 }, 6, /cniVersion/],
    ["an unknown version", environment, { ...config, cniVersion: "9.0.0" }, 1, /9\.0\.0.*1\.1\.0/],
    ["an unknown verb", { ...environment, CNI_COMMAND: "add" }, config, 4, /CNI_COMMAND "add"/],
    ["an unknown verb with malformed input", { ...environment, CNI_COMMAND: "add" }, "{", 6, /standard input/],
    ["no container id", without("CNI_CONTAINERID"), config, 4, /CNI_CONTAINERID/],
    ["a container id with a newline", { ...environment, CNI_CONTAINERID: "a\n" }, config, 4, /CNI_CONTAINERID/],
    ["a long interface name", { ...environment, CNI_IFNAME: "a".repeat(16) }, config, 4, /CNI_IFNAME/],
    ["an interface name with a colon", { ...environment, CNI_IFNAME: "a:b" }, config, 4, /CNI_IFNAME/],
    ["the interface name ..", { ...environment, CNI_IFNAME: ".." }, config, 4, /CNI_IFNAME/],
    ["the plugin's own namespace", { ...environment, CNI_NETNS: "/proc/self/ns/net" }, config, 4, /CNI_NETNS/],
    [
      "a pod name that is none",
      { ...environment, CNI_ARGS: "K8S_POD_NAMESPACE=..;K8S_POD_NAME=a" },
      config,
      4,
      /CNI_ARGS/,
    ],
    ["a wrong field", environment, { ...config, linkerd: { "proxy-uid": "x" } }, 7, /linkerd\.proxy-uid: "x"/],
    ["a wrong port", environment, { ...config, linkerd: { "inbound-ports-to-ignore": ["x"] } }, 7, /"x" is not a port/],
    ["a previous result that is none", environment, { ...config, prevResult: 1 }, 7, /prevResult/],
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
  it.each(cases)("%s", async (_, env, stdin, ...[code, message]) => {
    const { document, status, kernel } = await call(env, stdin);
    expect(document).toMatchObject({ code, msg: expect.stringMatching(message), details: "" });
    expect(status).toBe(1);
    expect(kernel.sent).toEqual([]);
  });

  it("says all that is missing at once, and what is invalid before it", async () => {
    const { document } = await call({ CNI_COMMAND: "ADD" }, config);
    expect(document.msg).toBe("ADD needs CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME, CNI_PATH in the environment");
    const invalid = await call({ CNI_COMMAND: "ADD", CNI_IFNAME: "a/b" }, config);
    expect(invalid.document.msg).toContain("CNI_IFNAME");
    expect(invalid.document.msg).not.toContain("CNI_PATH");
  });

  it("carries the caller's version where it is known", async () => {
    const { document } = await call({ ...environment, CNI_COMMAND: "x" }, { ...config, cniVersion: "0.4.0" });
    expect(document.cniVersion).toBe("0.4.0");
    expect((await call(environment, "{")).document.cniVersion).toBe(CURRENT_VERSION);
  });
});

describe("ADD", () => {
  it("programs the namespace of a meshed pod in one datagram and passes the result on", async () => {
    const { document, status, kernel, requests } = await call(environment, config);
    expect(document).toEqual(prevResult);
    expect(status).toBe(0);
    expect(requests).toEqual(["/api/v1/namespaces/shop/pods/cart-1"]);
    expect(kernel.sent.map(({ namespace }) => namespace)).toEqual([NETNS]);
  });

  it("replaces what an earlier ADD left", async () => {
    const made = makeWorld();
    await call(environment, config, made);
    const { status, kernel } = await call(environment, config, made);
    expect(status).toBe(0);
    expect(kernel.sent).toHaveLength(3);
  });

  it("leaves a pod without a proxy alone", async () => {
    const plain = () => ({ status: 200, body: '{"spec":{"containers":[{"name":"app"}]}}' });
    const { status, kernel } = await call(environment, config, makeWorld(plain));
    expect([status, kernel.sent]).toEqual([0, []]);
  });

  it("is an error that names the remedy where the API server cannot be reached", async () => {
    const unreachable = () => {
      throw new ApiUnreachable("10.0.0.1:443", "connection refused");
    };
    const { document, status, kernel } = await call(environment, config, makeWorld(unreachable));
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("10.0.0.1:443: connection refused") });
    expect(document.msg).toContain(kubeconfig);
    expect([status, kernel.sent]).toEqual([1, []]);
  });

  it("says that the token expired", async () => {
    const { document } = await call(
      environment,
      config,
      makeWorld(() => ({ status: 401, body: "" })),
    );
    expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(/401.*token.*kubeconfig\.json.*expired/) });
  });

  it("prints an empty result where it is called alone", async () => {
    const { prevResult: _, ...alone } = config;
    expect((await call(environment, alone)).document).toEqual({ cniVersion: "1.0.0" });
  });
});

describe("the other verbs", () => {
  it("DEL prints nothing and needs neither namespace nor previous result", async () => {
    const { CNI_NETNS: _, ...env } = environment;
    const outcome = await call({ ...env, CNI_COMMAND: "DEL" }, { cniVersion: "1.0.0", name: "pods", linkerd: 1 });
    expect(outcome).toMatchObject({ stdout: "", status: 0 });
  });

  it("VERSION answers whatever standard input holds", async () => {
    const { document, status } = await call({ CNI_COMMAND: "VERSION" }, "{");
    expect(document).toEqual({ cniVersion: CURRENT_VERSION, supportedVersions: [...VERSIONS] });
    expect(status).toBe(0);
  });

  it("without a verb it says what it is", async () => {
    const outcome = await call({ CNI_COMMAND: "" }, "{");
    expect(outcome).toMatchObject({
      stdout: "",
      status: 0,
      stderr: expect.stringContaining("versions supported: 0.1.0"),
    });
  });
});
