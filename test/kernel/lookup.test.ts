/** Look-ups of the built plugin through the built installer, whatever becomes of the installer. */
import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { createServer, connect as nodeConnect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { type Answer, ApiStub, json } from "../support/api-server";
import { get } from "../support/http";
import { hasProgram, namespacesMissing } from "../support/netns";
import { NodeInstaller } from "../support/node-installer";
import { PluginNode } from "../support/plugin";
import { freePort } from "../support/ports";
import { buildPrograms } from "../support/program";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");
const injected = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1",
  "linkerd.io/proxy-version": "edge-26.7.1",
};
const manual = { ...injected, "linkerd.io/created-by": "linkerd/cli edge-26.7.1" };

/** A pod of any name; what others see of it as well. */
const podOf = (annotations: object, more: object = {}) => ({
  kind: "Pod",
  metadata: { name: "cart-1", uid: "u", annotations, ...more },
  spec: { containers: [{ name: "app" }, { name: "linkerd-proxy" }] },
});
const CART = "/api/v1/namespaces/shop/pods/cart-1";
const namespace = { kind: "Namespace", metadata: { name: "shop", annotations: {} } };
/** The installer asks for its own pod, to see whether it can. */
const isOwnPod = (url = "") => url.split("?")[0]?.endsWith("/pods/linkerd-cni") === true;

suite("a look-up", missing, () => {
  let api: ApiStub;
  let installer: NodeInstaller;
  let plugin: PluginNode;
  let answer: Answer;

  const serve: Answer = (request, response) =>
    isOwnPod(request.url) ? json(200, podOf({}))(request, response) : answer(request, response);
  const meshed: Answer = (request, response) =>
    json(200, request.url?.includes("/pods/") ? podOf(injected) : namespace)(request, response);

  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start(serve);
    answer = meshed;
    installer = await NodeInstaller.start(api);
    plugin = await PluginNode.open({ runDir: installer.runDir });
  });
  beforeEach(() => {
    answer = meshed;
  });
  afterAll(async () => {
    await plugin.close();
    await installer.close();
    api.close();
  });

  /** Calls ADD for a new pod. Gives what it printed, and the line of the log. */
  async function add(stanza: object = {}) {
    const pod = await plugin.node.pod();
    const { document, status, stderr } = await plugin.call(plugin.environment(pod), { ...config, ...stanza });
    plugin.node.release(pod);
    const log = readFileSync(join(installer.runDir, "plugin.log"), "utf8").trimEnd().split("\n");
    return { document, status, stderr, record: JSON.parse(log.at(-1) ?? "") as Record<string, unknown> };
  }

  const byInstaller = { status: 0, document: prevResult, record: { decision: "redirect", lookup: "installer" } };
  /** Without an answer, the annotations that a runtime passes. */
  const byAnnotations = (why: RegExp) => ({
    status: 0,
    document: prevResult,
    record: { decision: "redirect", lookup: "annotations", reason: expect.stringMatching(why) },
  });
  const passed = { runtimeConfig: { [POD_ANNOTATIONS]: injected } };
  const refused = (why: RegExp) => ({ document: { code: 11, msg: expect.stringMatching(why) } });

  it("goes through the installer, over open connections", async () => {
    const before = api.handshakes;
    for (let calls = 0; calls < 10; calls++) expect(await add()).toMatchObject(byInstaller);
    // The installer may open another connection from time to time.
    expect(api.handshakes - before).toBeLessThan(10);
  });

  it("goes to the installer of its own distribution, if several share the host", async () => {
    const other = await ApiStub.start((request, response) =>
      isOwnPod(request.url) ? json(200, podOf({}))(request, response) : json(403, {})(request, response),
    );
    const second = await NodeInstaller.start(other);
    try {
      await add();
      const before = readFileSync(join(installer.runDir, "plugin.log"), "utf8");
      const pod = await plugin.node.pod();
      const network = { ...config, "run-dir": second.runDir };
      const { document } = await plugin.call(plugin.environment(pod), network);
      plugin.node.release(pod);
      expect(document).toMatchObject({ code: 11, msg: expect.stringContaining("answered 403") });
      expect(readFileSync(join(second.runDir, "plugin.log"), "utf8")).toContain('"lookup":"installer"');
      expect(readFileSync(join(installer.runDir, "plugin.log"), "utf8")).toBe(before);
      expect(await add()).toMatchObject(byInstaller);
    } finally {
      await second.close();
      other.close();
    }
  });

  it("asks for a namespace as well", async () => {
    answer = (request, response) =>
      json(200, request.url?.includes("/pods/") ? podOf(manual) : namespace)(request, response);
    expect(await add()).toMatchObject({ ...byInstaller, record: { lookup: "installer", requests: 2 } });
  });

  it("gets only the fields for the decision of a large pod", async () => {
    const managedFields = Array.from({ length: 1500 }, (_, at) => ({ [`f:${at}`]: "x".repeat(1000) }));
    answer = json(200, podOf(injected, { managedFields }));
    expect(await add()).toMatchObject(byInstaller);
    const { status, size } = await asked(CART);
    expect(status).toBe(200);
    expect(size).toBeLessThan(1000);
  });

  it("refuses a pod that is too large, unless its annotations decide", async () => {
    answer = json(200, podOf(injected, { managedFields: "x".repeat(5 * 1024 * 1024) }));
    expect(await add()).toMatchObject(refused(/more than there is room for/));
    expect(await add(passed)).toMatchObject(byAnnotations(/more than there is room for/));
    answer = meshed;
    expect(await add()).toMatchObject(byInstaller);
  });

  it.each([401, 403, 404, 500])("passes %d on", async (status) => {
    answer = json(status, { kind: "Status", code: status });
    const { document, record } = await add();
    expect(document).toMatchObject({ code: 11, msg: expect.stringContaining(`answered ${status}`) });
    expect(record).toMatchObject({ lookup: "installer", requests: 1 });
  });

  it("waits as long as an API server asks that has no room", async () => {
    let asked = 0;
    answer = (request, response) => {
      if (asked++ > 0) return meshed(request, response);
      response.writeHead(429, { "retry-after": "1" }).end("{}");
    };
    expect(await add()).toMatchObject(byInstaller);
    expect(asked).toBe(2);
  });

  it("waits for a slow API server as long as the installer reports progress", async () => {
    answer = (request, response) => void setTimeout(() => meshed(request, response), 1500);
    expect(await add()).toMatchObject(byInstaller);
  });

  it("takes 64 at a time, and callers beyond wait for them", async () => {
    const held = new Set<() => void>();
    answer = (request, response) => {
      const end = () => meshed(request, response);
      held.add(end);
      response.once("close", () => held.delete(end));
    };
    // On a busy machine the time of the first is over before the last one is there: they ask again.
    const caller = async () => {
      for (let text = ""; !text.includes(" 200 "); ) {
        text = await exchange(`GET ${CART} HTTP/1.1\r\nconnection: close\r\n\r\n`);
        expect(text).toMatch(/ 200 |no answer within/);
      }
    };
    const callers = Array.from({ length: 80 }, caller);
    await until("64 of them", () => held.size >= 64);
    expect(api.handshakes).toBeGreaterThanOrEqual(64);
    const called = add();
    answer = meshed;
    expect(held.size).toBe(64);
    for (const end of held) end();
    expect(await called).toMatchObject(byInstaller);
    await Promise.all(callers);
  });

  it("asks again over another connection when the API server has closed the open ones", async () => {
    await add();
    api.closeConnections();
    expect(await add()).toMatchObject(byInstaller);
  });

  it.each([
    ["asks for the same", "1111"],
    ["was changed since", "2222"],
  ])("decides by the object, which %s as the annotations that the runtime passes", async (_, ports) => {
    const skipped = (text: string) => ({ ...injected, "config.linkerd.io/skip-inbound-ports": text });
    answer = json(200, podOf(skipped(ports)));
    const pod = await plugin.node.pod();
    const runtimeConfig = { [POD_ANNOTATIONS]: skipped("1111") };
    const { status } = await plugin.call(plugin.environment(pod), { ...config, runtimeConfig });
    expect(status).toBe(0);
    const rules = plugin.node.within(pod, "nft", ["list", "ruleset"]);
    expect([1111, 2222].filter((port) => rules.includes(`dport ${port} `)).map(String)).toEqual([ports]);
    plugin.node.release(pod);
  });

  /** One request at the socket, as it came. */
  async function exchange(...parts: readonly (string | Buffer)[]): Promise<string> {
    const socket = nodeConnect(installer.socket).on("error", () => undefined);
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk;
    });
    for (const part of parts) socket.write(part);
    await new Promise((resolve) => socket.once("close", resolve));
    return text;
  }

  /** The same by a process of another user: what it received, or the code of its error. */
  async function asNobody(): Promise<string> {
    const script =
      "process.setgroups([]); process.setgid(65534); process.setuid(65534);" +
      'const socket = require("net").connect(process.env.SOCKET).on("error", ({ code }) => console.log(code));' +
      'socket.on("data", (chunk) => process.stdout.write(chunk)); socket.write("GET / HTTP/1.1\\r\\n\\r\\n");';
    const { stdout } = await promisify(execFile)(process.execPath, ["-e", script], {
      env: { SOCKET: installer.socket },
    });
    return stdout.trim();
  }

  async function asked(path: string, method = "GET") {
    const received = await exchange(`${method} ${path} HTTP/1.1\r\nconnection: close\r\n\r\n`);
    // The installer of a busy machine reports progress first.
    const text = received.slice(received.lastIndexOf("HTTP/1.1"));
    return { status: Number(text.split(" ")[1]), size: text.length };
  }

  it.each([
    ["/api/v1/namespaces/shop/secrets/token", "GET", 404],
    ["/api/v1/namespaces/shop/pods", "GET", 404],
    ["/api/v1/namespaces/shop/pods/a/log", "GET", 404],
    ["/api/v1/namespaces/shop/pods/..", "GET", 404],
    ["/api/v1/namespaces/shop/pods/a?watch=1", "GET", 404],
    ["/api/v1/namespaces/shop/services/kubernetes", "GET", 404],
    ["/api/v1/pods", "GET", 404],
    ["/api/v1/namespaces/", "GET", 404],
    ["/", "GET", 404],
    ["/api/v1/namespaces/shop/pods/a", "DELETE", 405],
  ])("%s cannot be asked for by %s", async (path, method, status) => {
    const before = api.requests.filter((url) => !isOwnPod(url)).length;
    expect(await asked(path, method)).toMatchObject({ status });
    expect(api.requests.filter((url) => !isOwnPod(url))).toHaveLength(before);
  });

  it("is for root and the installer's own user alone", async () => {
    expect(statSync(installer.socket).mode & 0o777).toBe(0o600);
    if (process.getuid?.() !== 0) return;
    chmodSync(installer.runDir, 0o755);
    expect(await asNobody()).toBe("EACCES");
    // Where another program has opened the file, the kernel still says who comes.
    chmodSync(installer.socket, 0o666);
    expect(await asNobody()).toMatch(/^(EPIPE|ECONNRESET)?$/);
    chmodSync(installer.socket, 0o600);
  });

  it("has its answer beside callers that send half a request, too much, or nothing", async () => {
    expect(await exchange("GET / HTTP/1.1\r\n", Buffer.alloc(1024 * 1024, "x"))).toMatch(/^(HTTP\/1.1 4|$)/);
    expect(await exchange("nonsense\r\n\r\n")).toMatch(/^HTTP\/1.1 400 /);
    const silent: Socket[] = [];
    for (let each = 0; each < 1000; each++) {
      const socket = nodeConnect(installer.socket).on("error", () => undefined);
      if (each % 2 === 0) socket.write("GET /api");
      silent.push(socket);
    }
    expect(await add()).toMatchObject(byInstaller);
    for (const socket of silent) socket.destroy();
    expect(await add()).toMatchObject(byInstaller);
  });

  describe("if the installer", () => {
    beforeEach(async () => {
      if (installer.process.hasEnded) await installer.restart();
    });

    it("was killed, the annotations decide, and a pod without waits", async () => {
      await installer.process.stop("SIGKILL");
      expect(existsSync(installer.socket)).toBe(true);
      expect(await add(passed)).toMatchObject(byAnnotations(/ECONNREFUSED/));
      const own = { "own-pods": { namespace: "linkerd-cni", daemonset: "linkerd-cni" } };
      const names =
        /a pod of DaemonSet linkerd-cni\/linkerd-cni\) does not answer: .*ECONNREFUSED.*the kubelet tries again/;
      expect(await add(own)).toMatchObject(refused(names));
    });

    it("has ended, too", async () => {
      await installer.process.stop("SIGTERM");
      expect(existsSync(installer.socket)).toBe(false);
      expect(await add(passed)).toMatchObject(byAnnotations(/ENOENT/));
    });

    const gone = ["HTTP/1.1 404 Not Found", "content-length: 4"];
    const made = (head: readonly string[], body: string) => `${head.join("\r\n")}\r\n\r\n${body}`;
    const ok = (version: string, body: string) =>
      made(["HTTP/1.1 200 OK", `x-lookup-answer: ${version}`, `content-length: ${body.length}`], body);
    it.each([
      ["does not know the path", made(gone, "what"), /what/],
      ["is of another version", ok("0", JSON.stringify(podOf({}))), /of another version/],
      ["answers with garbage", ok("1", "{]"), /JSON|unexpected|expecting/i],
      ["speaks another protocol", "220 ready\r\n", /./],
    ])("%s, the annotations decide", async (_, text, why) => {
      await installer.process.stop("SIGTERM");
      const other = createServer(
        (socket) =>
          void socket
            .on("error", () => undefined)
            .resume()
            .end(text),
      );
      await new Promise<void>((resolve) => other.listen(installer.socket, resolve));
      const called = await add(passed);
      other.close();
      expect(called).toMatchObject(byAnnotations(why));
    });

    const calls: Awaited<ReturnType<typeof add>>[] = [];
    it.each([
      ["hangs", () => void installer.process.signal("SIGSTOP")],
      [
        "hangs after it has accepted the request",
        () => {
          answer = (request, response) => {
            answer = meshed;
            installer.process.signal("SIGSTOP");
            meshed(request, response);
          };
        },
      ],
    ])("%s, the annotations decide after a second", async (_, hang) => {
      // A machine that pauses the plugin itself makes some take longer.
      await until("a decision in time", async () => {
        hang();
        const called = await add(passed);
        installer.process.signal("SIGCONT");
        calls.push(called);
        return Number(called.record["lookupMs"]) < 1200;
      });
      for (const called of calls.splice(0)) {
        expect(called).toMatchObject(byAnnotations(/no answer within 1000 ms/));
        expect(Number(called.record["lookupMs"])).toBeGreaterThanOrEqual(1000);
      }
      expect(await add()).toMatchObject(byInstaller);
    });

    it("hangs for less than five seconds, a pod without annotations starts", async () => {
      let called: ReturnType<typeof add> | undefined;
      await until("a pause of less than five seconds", async () => {
        const begin = performance.now();
        installer.process.signal("SIGSTOP");
        called = add();
        await sleep(2000);
        installer.process.signal("SIGCONT");
        const paused = performance.now() - begin;
        await called;
        return paused < 4000;
      });
      expect(await called).toMatchObject(byInstaller);
    });

    it("does not chain, it has the node and answers, too", async () => {
      await installer.process.stop("SIGTERM");
      await installer.restart({ CHAINED: "false" });
      expect(await add()).toMatchObject(byInstaller);
      await installer.process.stop("SIGTERM");
    });
  });

  it("is what an installer needs to be ready: without the socket it is not", async () => {
    await installer.process.stop("SIGTERM");
    mkdirSync(installer.socket);
    const port = await freePort();
    const other = installer.another({ HEALTH_PORT: `${port}` });
    try {
      await until("its word", async () =>
        (await get(port, "/ready")).text.includes("the plugin cannot look pods up: "),
      );
      expect((await get(port, "/ready")).status).toBe(503);
    } finally {
      await other.stop("SIGKILL");
      rmdirSync(installer.socket);
    }
    await installer.restart();
  });

  it("stays with the installer that has the node until another one has it, which then takes the socket", async () => {
    if (installer.process.hasEnded) await installer.restart();
    const inode = () => statSync(installer.socket).ino;
    const first = inode();
    const leftover = `${installer.socket}.new-left`;
    const left = createServer();
    await new Promise<void>((resolve) => left.listen(leftover, resolve));
    renameSync(leftover, `${leftover}-behind`);
    await new Promise((resolve) => left.close(resolve));
    const bad = {
      "cannot reach the API server": { KUBERNETES_SERVICE_PORT: "1" },
      "is missing in this image": { CONTAINER_CNI_BIN_DIR: installer.netDir },
    };
    for (const [says, changes] of Object.entries(bad)) {
      const other = installer.another({ POD_NAME: "linkerd-cni-bad", ...changes });
      await other.says(says);
      expect(await add()).toMatchObject(byInstaller);
      expect(inode()).toBe(first);
      await other.stop("SIGKILL");
    }
    const second = installer.another({ POD_NAME: "linkerd-cni-next" });
    await second.says("looking pods up at");
    expect(inode()).not.toBe(first);
    expect(readdirSync(installer.runDir).filter((name) => name.includes(".new"))).toEqual([]);
    expect(await add()).toMatchObject(byInstaller);
    // It leaves the node to the first one.
    expect(await second.stop("SIGTERM")).toBe(0);
    await until("its socket", () => existsSync(installer.socket));
    expect(await add()).toMatchObject(byInstaller);
    rmSync(installer.socket);
    await until("another socket", () => existsSync(installer.socket));
    expect(await add()).toMatchObject(byInstaller);
  });
});
