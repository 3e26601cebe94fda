import { dirname } from "node:path";
import { CURRENT_VERSION, VERSIONS } from "../cni/versions";
import { type ApiResponse, ApiUnreachable } from "../kubernetes/client";
import { kubeconfigSource } from "../kubernetes/kubeconfig.testing";
import type { World } from "./call";
import { dispatch } from "./dispatch";
import { FakeKernel } from "./netlink/fake.testing";
import { config, environment, failures, kubeconfig, NETNS, prevResult } from "./protocol-cases.testing";

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
    host: { find: () => undefined, run: () => ({ status: 1, stdout: "", stderr: "" }) },
    elapsed: () => 0,
    onIdle: () => undefined,
    now: () => new Date("2026-07-01T00:00:00Z"),
    kubeconfig: kubeconfigSource,
    identify: (path) => ({ device: path === "/etc" ? "1" : "4", inode: path === "/proc/self/ns/net" ? 1n : 2n }),
  };
  return { kernel, requests, log, world };
}

async function call(env: Record<string, string>, stdin: unknown, made = makeWorld()) {
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  const outcome = await dispatch(env, () => text, made.world);
  return { ...outcome, document: outcome.stdout === "" ? undefined : JSON.parse(outcome.stdout), ...made };
}

describe("a call that cannot be served", () => {
  it.each(failures)("%s", async (_, env, stdin, ...[code, message]) => {
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
    expect(kernel.sent).toHaveLength(4);
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

  it("is an error where nothing more happens and there is no answer", async () => {
    const made = makeWorld();
    const world: World = {
      ...made.world,
      connect: () => () => new Promise(() => undefined),
      onIdle: (callback) => setTimeout(callback),
    };
    const { document, status, kernel } = await call(
      environment,
      { ...config, cniVersion: "0.4.0" },
      { ...made, world },
    );
    expect(document).toMatchObject({ cniVersion: "0.4.0", code: 102, msg: expect.stringContaining("no end") });
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

  it("GC needs a list, which may be null, and has nothing to do", async () => {
    const gc = (valid: object) =>
      call({ CNI_COMMAND: "GC", CNI_PATH: "/x" }, { cniVersion: "1.1.0", name: "pods", ...valid });
    const key = "cni.dev/valid-attachments";
    for (const list of [[], null, [{ containerID: "a", ifname: "eth0" }]]) {
      expect(await gc({ [key]: list })).toMatchObject({ stdout: "", status: 0 });
    }
    expect((await gc({})).document).toMatchObject({ code: 7, msg: expect.stringContaining(key) });
    expect((await gc({ [key]: "x" })).document).toMatchObject({ code: 7 });
  });

  const statusOf = (kubernetes: object, strict = true) =>
    call(
      { CNI_COMMAND: "STATUS", CNI_PATH: "/x" },
      { cniVersion: "1.1.0", name: "pods", kubernetes, "strict-status": strict },
    );

  it("STATUS is ready by default, whatever the rest of the stanza holds", async () => {
    const stanza = { cniVersion: "1.1.0", name: "pods", kubernetes: 1, linkerd: "x" };
    const outcome = await call({ CNI_COMMAND: "STATUS", CNI_PATH: "/x" }, stanza);
    expect(outcome).toMatchObject({ stdout: "", status: 0 });
    expect(await statusOf({ kubeconfig: "/none" }, false)).toMatchObject({ stdout: "", status: 0 });
  });

  it("a strict STATUS fails where the kubeconfig or its token cannot work", async () => {
    expect(await statusOf({ kubeconfig })).toMatchObject({ stdout: "", status: 0 });
    expect((await statusOf({ kubeconfig: "/none" })).document).toMatchObject({
      code: 50,
      msg: expect.stringContaining("/none"),
    });
    const expired = `${dirname(kubeconfig)}/expired.json`;
    expect((await statusOf({ kubeconfig: expired })).document).toMatchObject({
      code: 50,
      msg: expect.stringMatching(/expired\.json expired at 2026-06-30T/),
    });
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
