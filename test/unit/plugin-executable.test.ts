/** The built executable, called as a runtime calls it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { config, environment, failures, NETNS, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");
const injected = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1",
  "linkerd.io/proxy-version": "edge-26.7.1",
};
const meshed = json(200, {
  kind: "Pod",
  metadata: { name: "cart-1", annotations: injected },
  spec: { containers: [{ name: "app" }, { name: "linkerd-proxy" }] },
});

suite("the executable", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let pod: string;

  beforeAll(async () => {
    api = await ApiStub.start(meshed);
    plugin = await PluginNode.open(api);
  });
  beforeEach(async () => {
    api.answer = meshed;
    api.requests.length = 0;
    pod = await plugin.node.pod();
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  const rules = () => plugin.node.within(pod, "nft", ["list", "ruleset"]);

  it.each(failures)("refuses %s", async (_, env, stdin, ...[code, message]) => {
    const netns = env["CNI_NETNS"] === NETNS ? { CNI_NETNS: pod } : {};
    const { document, status } = await plugin.call({ ...env, ...netns }, stdin);
    expect(document).toMatchObject({ code, msg: expect.stringMatching(message), details: "" });
    expect(status).toBe(1);
    expect(rules()).toBe("");
  });

  it("redirects a meshed pod, again too, and finds that right", async () => {
    for (const _ of [1, 2]) {
      const { document, status } = await plugin.call(plugin.environment(pod), config);
      expect([status, document]).toEqual([0, prevResult]);
    }
    expect(rules().match(/redirect to/g)).toHaveLength(2);
    expect(rules()).not.toContain("ip6");
    expect(api.requests).toEqual(["/api/v1/namespaces/shop/pods/cart-1", "/api/v1/namespaces/shop/pods/cart-1"]);
    const checked = await plugin.call(plugin.environment(pod, { CNI_COMMAND: "CHECK" }), config);
    expect([checked.status, checked.stdout]).toEqual([0, ""]);
  });

  it("sets the rules of both families", async () => {
    const both = { ...config, linkerd: { ipv6: true } };
    expect((await plugin.call(plugin.environment(pod), both)).status).toBe(0);
    expect(rules()).toContain("table ip6 linkerd-cni");
  });

  describe("CHECK", () => {
    const check = async (more: object = {}, from?: string) => {
      const env = plugin.environment(pod, { CNI_COMMAND: "CHECK" });
      return (await plugin.call(env, { ...config, ...more }, from === undefined ? {} : { from })).document;
    };
    const add = (linkerd: object = {}) => plugin.call(plugin.environment(pod), { ...config, linkerd });
    const nft = (script: string) => plugin.node.within(pod, "nft", ["-f", "-"], script);
    const handle = (chain: string, text: string) => {
      const listed = plugin.node.within(pod, "nft", ["-a", "list", "chain", "ip", "linkerd-cni", chain]);
      return /# handle (\d+)/.exec(listed.split("\n").find((line) => line.includes(text)) ?? "")?.[1];
    };

    it("sends no request, and compares with the rules of ADD, whatever the current configuration", async () => {
      await add({ "outgoing-proxy-port": 4000, ipv6: true });
      api.requests.length = 0;
      expect(await check()).toBeUndefined();
      expect(await check({ "run-dir": "/none" })).toBeUndefined();
      expect(api.requests).toEqual([]);
    });

    it("finds no difference if ADD set nothing", async () => expect(await check()).toBeUndefined());

    it("names a rule that is gone, the first, one between and the last", async () => {
      for (const [chain, text, named] of [
        ["outbound", "skuid", "rule 1 of 3 is missing"],
        ["outbound", "oifname", "rule 2 of 3 is missing"],
        ["outbound", "redirect", "rule 3 of 3 is missing"],
        ["inbound", "redirect", "chain inbound is empty"],
      ] as const) {
        await add();
        nft(`delete rule ip linkerd-cni ${chain} handle ${handle(chain, text)}`);
        expect(await check()).toMatchObject({ code: 100, msg: expect.stringContaining(named) });
      }
    });

    it("names a rule that was changed or added, a chain and a table that are gone", async () => {
      await add({ ipv6: true });
      nft(`replace rule ip linkerd-cni outbound handle ${handle("outbound", "skuid")} meta skuid 7 return`);
      expect(await check()).toMatchObject({
        code: 100,
        msg: expect.stringMatching(/"uid = 07000000 return" was added/),
      });
      await add({ ipv6: true });
      nft("insert rule ip linkerd-cni outbound tcp dport 80 return");
      expect(await check()).toMatchObject({ code: 100, msg: expect.stringContaining("was added") });
      await add({ ipv6: true });
      nft("delete chain ip6 linkerd-cni inbound");
      expect(await check()).toMatchObject({ msg: "table ip6 linkerd-cni, chain inbound is missing" });
      await add({ ipv6: true });
      nft("delete table ip6 linkerd-cni");
      expect(await check()).toMatchObject({ msg: "table ip6 linkerd-cni is missing" });
    });

    it("finds a long list right, and names the set that took its place", async () => {
      const ports = Array.from({ length: 1000 }, (_, index) => `${2 * index + 1}`);
      const networks = Array.from({ length: 1000 }, (_, index) => `fd00::${2 * index}/128`);
      await add({ ipv6: true, "inbound-ports-to-ignore": ports, "outbound-subnets-to-ignore": networks });
      expect(rules().match(/return/g)?.length).toBeLessThan(10);
      expect(await check()).toBeUndefined();
      nft(`delete rule ip linkerd-cni inbound handle ${handle("inbound", "dport")}`);
      nft("insert rule ip linkerd-cni inbound tcp dport { 1, 3, 9-11 } return");
      expect(await check()).toMatchObject({
        code: 100,
        msg: expect.stringMatching(/"protocol = 06 transport bytes 2\+2 in 3 intervals \w{8} return" was added/),
      });
    });

    it("leaves rules of others alone, though they come first", async () => {
      await add();
      nft("table ip other { chain out { type nat hook output priority -100; tcp dport 1 accept\n }\n}");
      expect(await check()).toBeUndefined();
    });

    it("finds nothing wrong with a meshed pod whose rules linkerd-init has yet to set", async () => {
      const runtimeConfig = { "io.kubernetes.cri.pod-annotations": injected };
      expect(await check({ runtimeConfig })).toBeUndefined();
    });
  });

  describe("without an installer", () => {
    beforeEach(() => api.lookUpNothing());
    afterEach(() => api.lookUp());

    const call = (verb: string, annotations?: Readonly<Record<string, string>>, more: object = {}) => {
      const runtimeConfig = { "io.kubernetes.cri.pod-annotations": annotations };
      const passed = annotations === undefined ? {} : { runtimeConfig };
      return plugin.call(plugin.environment(pod, { CNI_COMMAND: verb }), { ...config, ...passed, ...more });
    };
    const manual = { ...injected, "linkerd.io/created-by": "linkerd/cli edge-26.7.1" };

    it("a pod that is not meshed starts", async () => {
      expect(await call("ADD", {})).toMatchObject({ status: 0, document: prevResult });
      expect(rules()).toBe("");
    });

    it("the installer's own pods start, annotations passed or not", async () => {
      const own = { "own-pods": { namespace: "shop", daemonset: "cart" } };
      const args = `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=cart-x7k2p`;
      for (const annotations of [undefined, manual]) {
        const runtimeConfig = annotations && { "io.kubernetes.cri.pod-annotations": annotations };
        const env = plugin.environment(pod, { CNI_ARGS: args });
        const stdin = { ...config, ...own, ...(runtimeConfig === undefined ? {} : { runtimeConfig }) };
        expect(await plugin.call(env, stdin)).toMatchObject({ status: 0, document: prevResult });
      }
      expect(rules()).toBe("");
    });

    it("CHECK of any other sends no request", async () => {
      expect(await call("CHECK")).toMatchObject({ status: 0, stdout: "" });
    });

    it.each<[string, Readonly<Record<string, string>> | undefined, object]>([
      ["no annotations passed", undefined, {}],
      ["a pod that is meshed by other means", manual, {}],
      ["podLookup api", {}, { "pod-lookup": "api" }],
      ["podLookup api, injected", injected, { "pod-lookup": "api" }],
    ])("any other waits: %s", async (_, annotations, more) => {
      const own = { namespace: "linkerd-cni", daemonset: "linkerd-cni" };
      const { document, status } = await call("ADD", annotations, { ...more, "own-pods": own });
      const message =
        /cannot look up pod shop\/cart-1: the installer on this node \(a pod of DaemonSet linkerd-cni\/linkerd-cni\) does not answer: .*; the kubelet tries again$/;
      expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(message) });
      expect([status, rules()]).toEqual([1, ""]);
    });

    it("a pod starts whose installer comes back within its five seconds", async () => {
      const called = call("ADD");
      await new Promise((resolve) => setTimeout(resolve, 300));
      await api.lookUp();
      expect(await called).toMatchObject({ status: 0, document: prevResult });
      await api.lookUpNothing();
    });
  });

  it("sends no request for a pod that its annotations say is not meshed", async () => {
    const runtimeConfig = { "io.kubernetes.cri.pod-annotations": { a: "b" } };
    const { document, status } = await plugin.call(plugin.environment(pod), { ...config, runtimeConfig });
    expect([document, status, rules(), api.requests]).toEqual([prevResult, 0, "", []]);
  });

  it("takes a megabyte of standard input, and refuses one that is not JSON", async () => {
    const cniArgs = "x".repeat(1_000_000);
    const { document } = await plugin.call(plugin.environment(pod), { ...config, args: { cniArgs } });
    expect(document).toEqual(prevResult);
    expect((await plugin.call(plugin.environment(pod), "[".repeat(1_000_000))).document).toMatchObject({ code: 6 });
  });

  it("gives up after five seconds without an answer", async () => {
    api.answer = () => undefined;
    const documents: unknown[] = [];
    // A busy machine may take longer to start it.
    await until("an answer in time", async () => {
      const begin = performance.now();
      documents.push((await plugin.call(plugin.environment(pod), config)).document);
      return performance.now() - begin < 6500;
    });
    const refused = { code: 11, msg: expect.stringMatching(/no answer within \d+ ms/) };
    expect(documents).toEqual(documents.map(() => expect.objectContaining(refused)));
    expect(rules()).toBe("");
  });

  it("is not changed by files in the working directory or by the caller's environment", async () => {
    await writeFile(join(plugin.directory, ".env"), "CNI_COMMAND=VERSION\nCNI_ARGS=\n");
    const variables = {
      SSL_CERT_FILE: "/nonexistent",
      HTTPS_PROXY: "http://127.0.0.1:1",
      https_proxy: "http://127.0.0.1:1",
    };
    const env = plugin.environment(pod, variables);
    const { document, stderr } = await plugin.call(env, config, { cwd: plugin.directory });
    expect([document, stderr]).toEqual([prevResult, "linkerd-cni: info: redirected, by native\n"]);
  });

  it("runs with nothing but its own variables, and without a verb says what it is", async () => {
    const { stdout, stderr, status } = await plugin.call({}, "");
    expect([stdout, status]).toEqual(["", 0]);
    expect(stderr).toContain("CNI protocol versions supported");
    expect(Object.keys(environment)).not.toContain("PATH");
  });
});
