/** The built executable, called as a runtime calls it. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { stringify } from "yaml";
import { config, environment, failures, NETNS, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

jest.setTimeout(60_000);

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

  it("reads a kubeconfig in YAML, with credentials in files beside it", async () => {
    const kubeconfig = plugin.kubeconfig;
    const { clusters, ...rest } = JSON.parse(api.kubeconfig());
    const beside = { clusters, ...rest, users: [{ name: "linkerd-cni", user: { tokenFile: "token" } }] };
    try {
      await writeFile(kubeconfig, `# by hand\n${stringify(beside)}`);
      await writeFile(join(plugin.directory, "token"), "secret\n");
      expect(await plugin.call(plugin.environment(pod), config)).toMatchObject({ status: 0, document: prevResult });
      expect(api.requests).toHaveLength(1);
      await writeFile(kubeconfig, "a: [");
      const { stderr } = await plugin.call(plugin.environment(pod), config);
      expect(stderr).toContain(`kubeconfig ${kubeconfig} is neither JSON nor YAML`);
    } finally {
      await writeFile(kubeconfig, api.kubeconfig());
    }
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
      expect(await check({ kubernetes: { kubeconfig: "/none" } })).toBeUndefined();
      expect(api.requests).toEqual([]);
    });

    it("finds no difference if ADD set nothing", async () => expect(await check()).toBeUndefined());

    it("names a rule that is gone, the first, one between and the last", async () => {
      for (const [chain, text, named] of [
        ["outbound", "skuid", 'rule 1 of 3, "uid = 36080000 return", is missing'],
        ["outbound", "oifname", 'rule 2 of 3, "out-interface = '],
        ["outbound", "redirect", 'rule 3 of 3, "protocol = 06 to 4140 redirect", is missing'],
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

  /** Calls the plugin with another kubeconfig. */
  async function callBy(kubeconfig: string, env: Record<string, string> = {}) {
    const path = join(plugin.directory, "other");
    await writeFile(path, kubeconfig);
    return plugin.call(plugin.environment(pod, env), { ...config, kubernetes: { kubeconfig: path } });
  }

  it.each([
    ["refuses connections", "https://127.0.0.1:1", /127\.0\.0\.1:1: .*refused/i],
    ["has another name", "https://localhost:PORT", /not trusted/],
    ["has no name", "https://api.invalid:PORT", /api\.invalid/],
  ])("fails with one document and no rules if the API server %s", async (_, server, message) => {
    const kubeconfig = api.kubeconfig({ server: server.replace("PORT", `${api.port}`) });
    const { document, status } = await callBy(kubeconfig);
    expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(message) });
    expect([status, rules(), api.requests]).toEqual([1, "", []]);
  });

  it.each([{}, { NODE_TLS_REJECT_UNAUTHORIZED: "0" }])("sends no request if another CA signed (%j)", async (env) => {
    const other = await ApiStub.start(meshed);
    other.close();
    const { document, status } = await callBy(api.kubeconfig({ ca: other.ca }), env);
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("its certificate is not trusted") });
    expect([status, rules(), api.requests]).toEqual([1, "", []]);
  });

  it("asks an API server at an IPv6 address, and none whose certificate is for another address", async () => {
    const other = await ApiStub.start(meshed, "::1");
    const kubeconfig = (host: string) => other.kubeconfig({ server: `https://${host}:${other.port}` });
    try {
      expect(await callBy(kubeconfig("[::1]"))).toMatchObject({ status: 0, document: prevResult });
      expect(other.requests).toHaveLength(1);
    } finally {
      other.close();
    }
    const elsewhere = await ApiStub.start(meshed, "127.0.0.2");
    const { document } = await callBy(elsewhere.kubeconfig());
    elsewhere.close();
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("its certificate is not trusted") });
    expect(elsewhere.requests).toEqual([]);
  });

  it("accepts any server if the kubeconfig disables verification", async () => {
    const kubeconfig = JSON.parse(api.kubeconfig());
    kubeconfig.clusters[0].cluster = { server: `https://localhost:${api.port}`, "insecure-skip-tls-verify": true };
    expect(await callBy(JSON.stringify(kubeconfig))).toMatchObject({ status: 0, document: prevResult });
  });

  it.each<[string, (socket: Socket) => unknown, string, number]>([
    ["resets it", (socket) => socket.resetAndDestroy(), "broke during the TLS handshake", 2],
    ["closes it", (socket) => socket.end(), "broke during the TLS handshake", 2],
    ["speaks no TLS", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), "the TLS handshake failed", 1],
  ])("reports the failed step if a server accepts and %s", async (_, answer, message, connections) => {
    let made = 0;
    const server = createServer((socket) => {
      made += 1;
      socket.on("error", () => undefined).once("data", () => answer(socket));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { document } = await callBy(
      api.kubeconfig({ server: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }),
    );
    server.close();
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining(message) });
    expect([made, rules()]).toEqual([connections, ""]);
  });

  describe.each(["no", "a prohibit", "an unreachable", "a blackhole"])("if the node has %s route", (route) => {
    let from: string;
    beforeEach(async () => {
      from = await plugin.node.pod();
      const kind = route.split(" ")[1];
      if (kind !== undefined) plugin.node.within(from, "ip", ["route", "add", kind, "default"]);
      await writeFile(plugin.kubeconfig, api.kubeconfig({ server: "https://10.96.0.1:443" }));
    });
    afterEach(() => writeFile(plugin.kubeconfig, api.kubeconfig()));

    const call = (verb: string, annotations?: Readonly<Record<string, string>>) => {
      const runtimeConfig = { "io.kubernetes.cri.pod-annotations": annotations };
      return plugin.call(
        plugin.environment(pod, { CNI_COMMAND: verb }),
        { ...config, ...(annotations === undefined ? {} : { runtimeConfig }) },
        { from },
      );
    };

    it("a pod that is not meshed starts", async () => {
      expect(await call("ADD", {})).toMatchObject({ status: 0, document: prevResult });
      expect(rules()).toBe("");
    });

    it("an injected pod starts, redirected by its annotations", async () => {
      const { document, status, stderr } = await call("ADD", injected);
      expect([status, document]).toEqual([0, prevResult]);
      expect(stderr).toContain("deciding by the annotations alone");
      expect(rules()).toContain("redirect to");
      expect(await call("CHECK", injected)).toMatchObject({ status: 0, stdout: "" });
    });

    it("CHECK of any other sends no request", async () => {
      expect(await call("CHECK")).toMatchObject({ status: 0, stdout: "" });
    });

    it("ADD of any other reports why it fails", async () => {
      const { document, status } = await call("ADD");
      const message = /cannot look up pod shop\/cart-1: API server 10\.96\.0\.1:443: (.*no route|.*forbids|Failed)/;
      expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(message) });
      expect([status, rules()]).toEqual([1, ""]);
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

  it("tries a dropped connection once more", async () => {
    api.answer = (request, response) => {
      request.socket.destroy();
      api.answer = meshed;
      response.destroy();
    };
    expect((await plugin.call(plugin.environment(pod), config)).status).toBe(0);
    expect(api.requests).toHaveLength(2);
  });

  it("reads a chunked answer that comes in pieces", async () => {
    api.answer = (_, response) => {
      response.write('{"kind":"Pod","metadata":{"name":"cart-1","annotations":{"linkerd.io/created-by":');
      const rest = '"linkerd/proxy-injector x"}},"spec":{"containers":[],"initContainers":[{"name":"linkerd-proxy"}]}}';
      setTimeout(() => response.end(rest), 20);
    };
    expect((await plugin.call(plugin.environment(pod), config)).status).toBe(0);
    expect(rules()).toContain("redirect");
  });

  it("gives up after five seconds without an answer", async () => {
    api.answer = () => undefined;
    const begin = performance.now();
    const { document } = await plugin.call(plugin.environment(pod), config);
    expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(/no answer within \d+ ms/) });
    expect(performance.now() - begin).toBeLessThan(6500);
    expect(rules()).toBe("");
  }, 10_000);

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
