import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { CURRENT_VERSION, VERSIONS } from "../cni/versions";
import { Errno } from "../host/errno";
import { type FakeApi, FakeHost, type FakeMachine, OWN_NAMESPACE, response } from "../host/fake.testing";
import { Open } from "../host/files";
import { FakeNetfilter } from "../netlink/fake.testing";
import { dispatch } from "./dispatch";
import { config, environment, failures, kubeconfig, NETNS, prevResult } from "./protocol-cases.testing";

const meshed: FakeApi = () =>
  response(
    200,
    JSON.stringify({
      kind: "Pod",
      metadata: { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1" } },
      spec: { containers: [{ name: "app" }, { name: "linkerd-proxy" }] },
    }),
  );
const files = (...paths: readonly string[]) =>
  Object.fromEntries(paths.map((path) => [path, readFileSync(path, "utf8")]));
const expired = `${dirname(kubeconfig)}/expired.json`;

function call(env: Record<string, string>, stdin: unknown, machine: FakeMachine = {}) {
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  const host = new FakeHost({
    api: meshed,
    files: { "/etc": "", ...files(kubeconfig, expired) },
    namespaces: [NETNS],
    ...machine,
    env,
    stdin: text,
  });
  const outcome = dispatch(host);
  return { ...outcome, document: outcome.stdout === "" ? undefined : JSON.parse(outcome.stdout), host };
}

describe("a call that cannot be served", () => {
  it.each(failures)("%s", (_, env, stdin, ...[code, message]) => {
    const { document, status, host } = call(env, stdin);
    expect(document).toMatchObject({ code, msg: expect.stringMatching(message), details: "" });
    expect(status).toBe(1);
    expect(host.sent).toEqual([]);
  });

  it("reports all missing variables at once, and an invalid one before them", () => {
    const { document } = call({ CNI_COMMAND: "ADD" }, config);
    expect(document.msg).toBe("ADD needs CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME, CNI_PATH in the environment");
    const invalid = call({ CNI_COMMAND: "ADD", CNI_IFNAME: "a/b" }, config);
    expect(invalid.document.msg).toContain("CNI_IFNAME");
    expect(invalid.document.msg).not.toContain("CNI_PATH");
  });

  it("is short, however long the input is", () => {
    const long = "x".repeat(200_000);
    for (const [env, stdin] of [
      [{ ...environment, CNI_COMMAND: long }, config],
      [{ ...environment, CNI_NETNS: `/run/${long}` }, config],
      [environment, { ...config, name: long, cniVersion: "9" }],
      [
        { ...environment, CNI_COMMAND: "GC" },
        { ...config, name: long },
      ],
    ] as const) {
      const { stdout, stderr, status } = call(env, stdin);
      expect(status).toBe(1);
      expect(stdout.length + stderr.length).toBeLessThan(1000);
    }
  });

  it("has the caller's version if known", () => {
    const { document } = call({ ...environment, CNI_COMMAND: "x" }, { ...config, cniVersion: "0.4.0" });
    expect(document.cniVersion).toBe("0.4.0");
    expect(call(environment, "{").document.cniVersion).toBe(CURRENT_VERSION);
  });
});

describe("ADD", () => {
  it("programs a meshed pod's namespace in one datagram and passes the result on", () => {
    const { document, status, host } = call(environment, config);
    expect(document).toEqual(prevResult);
    expect(status).toBe(0);
    expect(host.requests).toEqual(["/api/v1/namespaces/shop/pods/cart-1"]);
    expect(host.sent.map(({ namespace }) => namespace)).toEqual([NETNS]);
  });

  it("replaces the rules of an earlier ADD", () => {
    const tables = new FakeNetfilter();
    const netfilter = (datagram: Uint8Array) => tables.exchange(datagram);
    call(environment, config, { netfilter });
    const { status, host } = call(environment, config, { netfilter });
    expect(status).toBe(0);
    expect(host.sent).toHaveLength(3);
  });

  it("reports a wrong annotation without terminal control characters", () => {
    const hidden = "\u001b[2J\u009b\u0085\u007f\u202e\u2028x";
    const annotations = {
      "linkerd.io/proxy-version": "x",
      "linkerd.io/created-by": "linkerd/proxy-injector x",
      "config.linkerd.io/skip-inbound-ports": hidden,
    };
    const runtimeConfig = { "io.kubernetes.cri.pod-annotations": annotations };
    const { document, stdout, stderr, record } = call(environment, {
      ...config,
      "pod-lookup": "annotations",
      runtimeConfig,
    });
    const shown = "\\u001b[2J\\u009b\\u0085\\u007f\\u202e\\u2028";
    expect(document.msg).toContain(shown);
    expect(JSON.parse(record ?? "").error).toContain(shown);
    expect(stderr).toContain(shown);
    expect(`${stdout}${stderr}${record}`.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  });

  it("skips a pod without a proxy", () => {
    const pod = { kind: "Pod", metadata: { name: "cart-1" }, spec: { containers: [{ name: "app" }] } };
    const api = () => response(200, JSON.stringify(pod));
    const { status, host } = call(environment, config, { api });
    expect([status, host.sent]).toEqual([0, []]);
  });

  it("is an error with the remedy if the API server cannot be reached", () => {
    const api: FakeApi = () => ({ step: "connect", error: -Errno.ECONNREFUSED, text: "" });
    const { document, status, host } = call(environment, config, { api });
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("[fd00::1]:6443: connection refused") });
    expect(document.msg).toContain(kubeconfig);
    expect([status, host.sent]).toEqual([1, []]);
  });

  it.each(["[]", "{}", "null", '{"kind":"Status","metadata":{}}'])(
    "is an error if the API server answers %s",
    (body) => {
      const { document, status, host } = call(environment, config, { api: () => response(200, body) });
      expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("is not Pod shop/cart-1") });
      expect([status, host.sent]).toEqual([1, []]);
    },
  );

  it("reports an expired token", () => {
    const { document } = call(environment, config, { api: () => response(401, "") });
    expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(/401.*token.*kubeconfig\.json.*expired/) });
  });

  it("prints an empty result if it is called alone", () => {
    const { prevResult: _, ...alone } = config;
    expect(call(environment, alone).document).toEqual({ cniVersion: "1.0.0" });
  });
});

/** A machine on which a file whose open blocks replaces CNI_NETNS after the check. */
class SwappedHost extends FakeHost {
  private looks = 0;

  override open(path: string, flags = 0): number {
    if (path === NETNS && (flags & Open.nonBlocking) === 0) throw new Error("blocked");
    return super.open(this.current(path));
  }

  override statx(path: string, flags: number, mask: number, into: Uint8Array): number {
    return super.statx(this.current(path), flags, mask, into);
  }

  private current(path: string): string {
    return path === NETNS && this.looks++ > 0 ? OWN_NAMESPACE : path;
  }
}

test("an ADD enters the namespace that was checked, and does not wait for a file that blocks", () => {
  const host = new SwappedHost({
    api: meshed,
    files: files(kubeconfig),
    namespaces: [NETNS],
    env: environment,
    stdin: JSON.stringify(config),
  });
  expect(dispatch(host)).toMatchObject({ status: 0 });
  expect(new Set(host.sent.map(({ namespace }) => namespace))).toEqual(new Set([NETNS]));
});

describe("the other verbs", () => {
  it("DEL prints nothing and needs neither namespace nor previous result", () => {
    const { CNI_NETNS: _, ...env } = environment;
    const outcome = call({ ...env, CNI_COMMAND: "DEL" }, { cniVersion: "1.0.0", name: "pods", linkerd: 1 });
    expect(outcome).toMatchObject({ stdout: "", status: 0 });
  });

  const bin = "/opt/cni/bin";
  const del = (files: readonly string[]) =>
    call({ ...environment, CNI_COMMAND: "DEL", CNI_PATH: `/other:${bin}` }, config, {
      files: Object.fromEntries(
        [`${bin}/linkerd-cni`, `${bin}/linkerd-cni-redirect`, ...files].map((path) => [path, ""]),
      ),
    }).host.unlinked;
  const own = `${bin}/linkerd-cni.attached/${environment["CNI_CONTAINERID"]}@${environment["CNI_IFNAME"]}`;

  it.each([
    ["an uninstall left nothing: nothing", [], []],
    ["others remain: its own attachment", [own, `${own}0`], [own]],
    [
      "it is the last one: its attachment, the list and the executables",
      [own],
      [own, `${bin}/linkerd-cni.attached`, `${bin}/linkerd-cni`, `${bin}/linkerd-cni-redirect`],
    ],
    ["it is not listed, or a second DEL: nothing", [`${own}0`], []],
  ])("DEL removes, if %s", (_, left, removed) => {
    expect(del(left)).toEqual(removed);
  });

  it("VERSION answers with any standard input", () => {
    const { document, status } = call({ CNI_COMMAND: "VERSION" }, "{");
    expect(document).toEqual({ cniVersion: CURRENT_VERSION, supportedVersions: [...VERSIONS] });
    expect(status).toBe(0);
  });

  it("GC needs a list, which may be null, and has nothing to do", () => {
    const gc = (valid: object) =>
      call({ CNI_COMMAND: "GC", CNI_PATH: "/x" }, { cniVersion: "1.1.0", name: "pods", ...valid });
    const key = "cni.dev/valid-attachments";
    for (const list of [[], null, [{ containerID: "a", ifname: "eth0" }]]) {
      expect(gc({ [key]: list })).toMatchObject({ stdout: "", status: 0 });
    }
    expect(gc({}).document).toMatchObject({ code: 7, msg: expect.stringContaining(key) });
    expect(gc({ [key]: "x" }).document).toMatchObject({ code: 7 });
  });

  const statusOf = (kubernetes: object, strict = true) =>
    call(
      { CNI_COMMAND: "STATUS", CNI_PATH: "/x" },
      { cniVersion: "1.1.0", name: "pods", kubernetes, "strict-status": strict },
    );

  it("STATUS is ready by default, whatever else is in the stanza", () => {
    const stanza = { cniVersion: "1.1.0", name: "pods", kubernetes: 1, linkerd: "x" };
    const outcome = call({ CNI_COMMAND: "STATUS", CNI_PATH: "/x" }, stanza);
    expect(outcome).toMatchObject({ stdout: "", status: 0 });
    expect(statusOf({ kubeconfig: "/none" }, false)).toMatchObject({ stdout: "", status: 0 });
  });

  beforeAll(() => jest.useFakeTimers({ now: new Date("2026-07-01T00:00:00Z") }));
  afterAll(() => jest.useRealTimers());

  it("a strict STATUS fails if the kubeconfig or its token cannot work", () => {
    expect(statusOf({ kubeconfig })).toMatchObject({ stdout: "", status: 0 });
    expect(statusOf({ kubeconfig: "/none" }).document).toMatchObject({
      code: 50,
      msg: expect.stringContaining("/none"),
    });
    expect(statusOf({ kubeconfig: expired }).document).toMatchObject({
      code: 50,
      msg: expect.stringMatching(/expired\.json expired at 2026-06-30T/),
    });
  });

  it("a strict STATUS is ready without a token on the node: the installer, which looks pods up then, could not start", () => {
    const bare = JSON.stringify({
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:6443" } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: {} }],
    });
    const status = call(
      { CNI_COMMAND: "STATUS", CNI_PATH: "/x" },
      { cniVersion: "1.1.0", name: "pods", kubernetes: { kubeconfig: "/bare" }, "strict-status": true },
      { files: { ...files(kubeconfig), "/bare": bare } },
    );
    expect(status).toMatchObject({ stdout: "", status: 0 });
  });

  it("a strict STATUS fails if the kernel is too old for the mode", () => {
    const osrelease = { "/proc/sys/kernel/osrelease": "4.14.0\n" };
    const status = call(
      { CNI_COMMAND: "STATUS", CNI_PATH: "/x" },
      { cniVersion: "1.1.0", name: "pods", kubernetes: { kubeconfig }, "strict-status": true },
      { files: { ...files(kubeconfig), ...osrelease } },
    );
    expect(status.document).toMatchObject({ code: 50, msg: expect.stringContaining("kernel 4.14.0") });
  });

  it("without a verb it says what it is", () => {
    const outcome = call({ CNI_COMMAND: "" }, "{");
    expect(outcome).toMatchObject({
      stdout: "",
      status: 0,
      stderr: expect.stringContaining("versions supported: 0.1.0"),
    });
  });
});

describe("a drop-in that an installer left behind", () => {
  const LIST = "/etc/cni/net.d/10-k.conflist";
  const linkerds = '{"name":"k","plugins":[{"type":"bridge"},{ "type" : "linkerd-cni", "linkerd": {} }]}';
  const left = { ...config, type: "linkerd-cni-redirect", extends: LIST };
  const on = (list: string, changed: number, machine: FakeMachine = {}) => ({
    files: { "/etc": "", ...files(kubeconfig), [LIST]: list },
    changed: { [LIST]: changed, [NETNS]: 1000 },
    ...machine,
  });
  const silent: FakeApi = () => {
    throw new Error("nobody answers");
  };

  it("passes a pod on that linkerd's own plugin has redirected, and asks nobody", () => {
    const { document, status, record, host } = call(environment, left, on(linkerds, 989));
    expect([status, document]).toEqual([0, prevResult]);
    expect(JSON.parse(record ?? "")).toMatchObject({ decision: "skip", reason: "linkerd's plugin sets the rules" });
    expect([host.requests, host.sent]).toEqual([[], []]);
  });

  it.each([
    ["was made before the runtime had read linkerd's stanza", left, linkerds, 990],
    ["has a list without linkerd's stanza", left, '{"name":"k","plugins":[{"type":"linkerd-cni-redirect"}]}', 0],
    ["has no list", { ...left, extends: "/etc/cni/net.d/gone" }, linkerds, 0],
    ["is of the auxiliary chain", { ...left, extends: undefined }, linkerds, 0],
    ["is called by an edited list", { ...left, type: "linkerd-cni" }, linkerds, 0],
  ])("redirects a pod that %s", (_, stanza, list, changed) => {
    const { status, host } = call(environment, stanza, on(list, changed));
    expect([status, host.sent.length]).toEqual([0, 1]);
  });

  const ended = { ...left, kubernetes: { kubeconfig: "/etc/cni/net.d/gone" } };

  it("passes each pod on after an uninstall, and is ready", () => {
    const { status, record, host } = call(environment, ended, on("", 0, { api: silent }));
    expect([status, host.sent]).toEqual([0, []]);
    expect(JSON.parse(record ?? "")).toMatchObject({ decision: "skip", reason: "uninstalled" });
    const strict = { ...ended, "strict-status": true };
    expect(call({ ...environment, CNI_COMMAND: "STATUS" }, { ...strict, cniVersion: "1.1.0" }).status).toBe(0);
  });

  it.each([
    ["the kubeconfig is there", left],
    ["an edited list calls it", { ...ended, type: "linkerd-cni" }],
  ])("lets a pod wait if %s", (_, stanza) => {
    const { status, document } = call(environment, stanza, on("", 0, { api: silent }));
    expect([status, document.code]).toEqual([1, 11]);
  });
});
