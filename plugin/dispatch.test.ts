import { CURRENT_VERSION, VERSIONS } from "../cni/versions";
import { type FakeApi, FakeHost, type FakeMachine, OWN_NAMESPACE, response } from "../host/fake.testing";
import { Open } from "../host/files";
import { dispatch } from "./dispatch";
import { config, environment, failures, NETNS, prevResult } from "./protocol-cases.testing";

const meshed: FakeApi = () =>
  response(
    200,
    JSON.stringify({
      kind: "Pod",
      metadata: { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1" } },
      spec: { containers: [{ name: "app" }, { name: "linkerd-proxy" }] },
    }),
  );

function call(env: Record<string, string>, stdin: unknown, machine: FakeMachine = {}) {
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  const host = new FakeHost({
    api: meshed,
    files: { "/etc": "" },
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

  it("is an error that names the installer's pod if the installer does not answer", () => {
    const own = { namespace: "linkerd-cni", daemonset: "cni" };
    const host = { api: undefined };
    const { document, status } = call(environment, { ...config, "own-pods": own }, host);
    const pod = "the installer on this node (a pod of DaemonSet linkerd-cni/cni) does not answer: connect to";
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining(pod) });
    expect(document.msg).toMatch(/cannot look up pod shop\/cart-1: .*ECONNREFUSED.*; the kubelet tries again$/);
    expect(status).toBe(1);
  });

  it("waits five seconds for an installer that nothing can replace, and no time for any other", () => {
    const waited = (annotations: object) => {
      const runtimeConfig = { "io.kubernetes.cri.pod-annotations": annotations };
      const { status, host } = call(environment, { ...config, runtimeConfig }, { api: undefined });
      return [status, host.now];
    };
    const [status, now] = waited({ "linkerd.io/proxy-version": "x", "linkerd.io/created-by": "linkerd/cli x" });
    expect(status).toBe(1);
    expect(now).toBeGreaterThan(4000);
    expect(now).toBeLessThan(5000);
    expect(waited({ "linkerd.io/proxy-version": "x", "linkerd.io/created-by": "linkerd/proxy-injector x" })).toEqual([
      0, 0,
    ]);
    expect(waited({})).toEqual([0, 0]);
  });

  it.each([
    [429, "Retry-After: 2\r\n", 2000],
    [429, "", 1000],
    [503, "Retry-After: 1\r\n", 1000],
  ])("asks again after the pause that the API server requests: %d, %j", (status, header, pause) => {
    const answers = [response(status, "", header), meshed("")];
    const { status: exit, host } = call(environment, config, { api: () => answers.shift() ?? "" });
    expect([exit, host.pauses, host.requests.length]).toEqual([0, [pause], 2]);
  });

  it("does not ask again if the pause exceeds its time, or the API server is unavailable for an unknown time", () => {
    for (const answer of [response(429, "", "Retry-After: 600\r\n"), response(503, "")]) {
      const { status, host } = call(environment, config, { api: () => answer });
      expect([status, host.pauses, host.requests.length]).toEqual([1, [], 1]);
    }
  });

  it("reports why the installer has no answer, and that it is of another version", () => {
    const refusal = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nwhy\n";
    expect(call(environment, config, { api: () => refusal }).document).toMatchObject({
      code: 11,
      msg: "cannot look up pod shop/cart-1: why",
    });
    const other = meshed("").replace("x-lookup-answer: 1", "x-lookup-answer: 2");
    expect(call(environment, config, { api: () => other }).document).toMatchObject({
      code: 11,
      msg: expect.stringContaining("another version"),
    });
  });

  it.each(["[]", "{}", "null", '{"kind":"Status","metadata":{}}'])(
    "is an error if the API server answers %s",
    (body) => {
      const { document, status, host } = call(environment, config, { api: () => response(200, body) });
      expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("is not Pod shop/cart-1") });
      expect([status, host.sent]).toEqual([1, []]);
    },
  );

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

  it("STATUS is ready by default, whatever else is in the stanza, and wrong if strict", () => {
    const stanza = { cniVersion: "1.1.0", name: "pods", kubernetes: 1, linkerd: "x" };
    const outcome = call({ CNI_COMMAND: "STATUS", CNI_PATH: "/x" }, stanza);
    expect(outcome).toMatchObject({ stdout: "", status: 0 });
    const strict = call({ CNI_COMMAND: "STATUS", CNI_PATH: "/x" }, { ...stanza, "strict-status": true });
    expect(strict.document).toMatchObject({ code: 7, msg: expect.stringContaining("kubernetes") });
  });

  it("a strict STATUS asks nothing: the installer, which looks pods up, could not start while it fails", () => {
    const strict = { cniVersion: "1.1.0", name: "pods", "strict-status": true };
    const { status, host } = call({ CNI_COMMAND: "STATUS", CNI_PATH: "/x" }, strict, { api: undefined });
    expect([status, host.requests]).toEqual([0, []]);
  });

  it("a strict STATUS fails if the kernel is too old for the mode", () => {
    const osrelease = { "/proc/sys/kernel/osrelease": "4.14.0\n" };
    const status = call(
      { CNI_COMMAND: "STATUS", CNI_PATH: "/x" },
      { cniVersion: "1.1.0", name: "pods", "strict-status": true },
      { files: osrelease },
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
    files: { "/etc": "", "/opt/cni/bin/linkerd-cni": "", [LIST]: list },
    changed: { [LIST]: changed, [NETNS]: 1000 },
    ...machine,
  });
  it("passes a pod on that linkerd's own plugin has redirected, without a look-up", () => {
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

  const bin = "/opt/cni/bin/linkerd-cni";
  const without = (executable: string, machine: FakeMachine = {}) => {
    const { files = {}, ...made } = on("", 0, { api: undefined, ...machine });
    return { ...made, files: Object.fromEntries(Object.entries(files).filter(([path]) => path !== executable)) };
  };

  it("passes each pod on after an uninstall, which removes the executable of either plugin, and is ready", () => {
    const { status, record, host } = call(environment, left, without(bin));
    expect([status, host.sent]).toEqual([0, []]);
    expect(JSON.parse(record ?? "")).toMatchObject({ decision: "skip", reason: "uninstalled" });
    const strict = { ...left, "strict-status": true, linkerd: "x", cniVersion: "1.1.0" };
    expect(call({ ...environment, CNI_COMMAND: "STATUS" }, strict, without(bin)).status).toBe(0);
  });

  it.each([
    ["the executable is there", left, ""],
    ["an edited list calls it", { ...left, type: "linkerd-cni" }, bin],
  ])("lets a pod wait if %s", (_, stanza, gone) => {
    const { status, document } = call(environment, stanza, without(gone));
    expect([status, document.code]).toEqual([1, 11]);
  });
});
