import { once } from "node:events";
import { Agent } from "node:https";
import { connect as connectPlain } from "node:net";
import type { TLSSocket } from "node:tls";
import * as fc from "fast-check";
import { metricIn } from "../../support/metrics";
import { until } from "../../support/until";
import { certificateFor, WebhookProcess } from "../../support/webhook";

const review = (namespace = "shop", pod: object = {}) =>
  JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "1",
      operation: "CREATE",
      resource: { group: "", version: "v1", resource: "pods" },
      namespace,
      object: { kind: "Pod", apiVersion: "v1", metadata: { generateName: "cart-", ...pod } },
    },
  });
const padding = (bytes: number) => ({ labels: { padding: "x".repeat(bytes) } });
const MIB = 1 << 20;

describe("the webhook's server", () => {
  let server: WebhookProcess;
  const certificates = Promise.all([certificateFor("one"), certificateFor("two")]);

  beforeEach(async () => {
    server = await WebhookProcess.start(await certificates);
  });

  afterEach(() => server.stop());

  const metric = async (result: string) => {
    const text = (await server.tell({ do: "metrics" })) as string;
    return metricIn(text, `linkerd_multus_webhook_requests_total{result="${result}"}`);
  };

  test("answers reviews, with bodies of any kind and size, on connections that stay", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 2, ca: [...server.ca] });
    const [body] = [review()];
    for (const sent of [body, [body.slice(0, 50), body.slice(50)], review("shop", padding(6 * MIB))]) {
      const answer = await server.send({ body: sent, agent });
      expect(answer).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
      const { apiVersion, kind, response } = JSON.parse(answer.body);
      expect({ apiVersion, kind }).toEqual({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" });
      expect(response).toMatchObject({ uid: "1", allowed: true, patchType: "JSONPatch" });
    }
    const headers = { "content-type": "application/json; charset=utf-8", expect: "100-continue" };
    await Promise.all(Array.from({ length: 100 }, () => server.send({ body: review(), headers, agent })));
    expect(await metric("patched")).toBe(103);
    agent.destroy();
  });

  test("reports problems in the form that the API server passes on", async () => {
    const answers = await Promise.all([
      server.send({ path: "/mutate", body: review() }),
      server.send({ method: "GET" }),
      server.send({ headers: { "content-type": "text/plain" }, body: review() }),
      server.send({ headers: { "content-encoding": "gzip" }, body: review() }),
      server.send({ body: "" }),
      server.send({ body: "{" }),
      server.send({ body: "[]" }),
      server.send({ body: "[".repeat(7 * MIB) }),
      server.send({ body: review().replace("admission.k8s.io/v1", "admission.k8s.io/v2") }),
      server.send({ body: review().replace('"pods"', '"services"') }),
      server.send({ body: review("unknown") }),
    ]);
    const said = answers.map(({ status, body }) => {
      const { kind, apiVersion, code, message } = JSON.parse(body);
      expect({ kind, apiVersion, code }).toEqual({ kind: "Status", apiVersion: "v1", code: status });
      return `${status}: ${message.replace(/(?<=not JSON: ).*/, "…")}`;
    });
    expect(said).toEqual([
      "404: /mutate does not exist: send reviews to /annotate-multus-v1-pod",
      "405: GET is not allowed: send a review with POST",
      '415: content-type "text/plain" is not application/json',
      `415: content-encoding "gzip" is not understood: send plain JSON`,
      "400: the review is not JSON: …",
      "400: the review is not JSON: …",
      "400: the document is not an object",
      "413: the review is nested deeper than 100 levels",
      "400: apiVersion is not admission.k8s.io/v1",
      "400: request.resource is services: this webhook reviews pods",
      "500: namespace unknown: no answer",
    ]);
    expect(answers[1]?.headers).toMatchObject({ allow: "POST" });
    expect([await metric("refused"), await metric("failed")]).toEqual([10, 1]);
  });

  test.each([
    ["a length that is too large", { headers: { "content-length": String(8 * MIB) } }],
    ["a body that is too large", { body: Array.from({ length: 8 }, () => "x".repeat(MIB)) }],
  ])("does not read %s", async (_, sent) => {
    const answer = await server.send(sent).catch((error: NodeJS.ErrnoException) => error);
    // A client that is still sending may see the connection closed before it reads the answer.
    if (answer instanceof Error) expect(answer.code).toMatch(/^(EPIPE|ECONNRESET)$/);
    else expect(answer).toMatchObject({ status: 413, headers: { connection: "close" } });
    const line = "review answered 413: the review is larger than 7340032 bytes";
    await until("the refusal's line in the log", () => server.log.includes(line));
    expect((await server.send({ body: review() })).status).toBe(200);
  });

  /** Everything received on a connection until its end. */
  async function rest(socket: TLSSocket): Promise<string> {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk;
    });
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("close", resolve));
    return text;
  }

  test("closes connections without data, with too little or with nonsense", async () => {
    await server.stop();
    server = await WebhookProcess.start(await certificates, { bodyMs: 2_000, idleMs: 5_000 });
    const silent = [connectPlain(server.port, "127.0.0.1"), connectPlain(server.port, "127.0.0.1")];
    // A record that is whole, of a message that is not.
    silent[1]?.write(Buffer.from("160301000401000100", "hex"));
    const [idle, half, nonsense, slow, broken] = await Promise.all([1, 2, 3, 4, 5].map(() => server.connect()));
    const head = "POST /annotate-multus-v1-pod HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\n";
    half?.write(head);
    nonsense?.write("hello\r\n\r\n");
    slow?.write(`${head}content-length: 100\r\n\r\n{`);
    broken?.end(`${head}content-length: 100\r\n\r\n{`);
    const texts = await Promise.all([idle, half, nonsense, slow, broken].map((socket) => rest(socket as TLSSocket)));
    for (const socket of silent) if (!socket.closed) await once(socket, "close");
    const starts = texts.map((text) => text.split("\r\n")[0]);
    expect(starts.slice(0, 4)).toEqual(["", "", "HTTP/1.1 400 Bad Request", "HTTP/1.1 408 Request Timeout"]);
    expect((await server.send({ body: review() })).status).toBe(200);
  });

  test("survives requests with changed, missing or additional bytes", async () => {
    await server.stop();
    server = await WebhookProcess.start(await certificates, { bodyMs: 1_000, idleMs: 2_000 });
    const body = review();
    const head = "POST /annotate-multus-v1-pod HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\n";
    const request = Buffer.from(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    const change = fc.tuple(fc.nat(request.length), fc.nat(20), fc.uint8Array({ maxLength: 20 }));
    const changed = fc
      .sample(fc.array(change, { minLength: 1, maxLength: 4 }), 100)
      .map((changes) =>
        changes.reduce(
          (bytes, [at, gone, added]) => Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + gone)]),
          request,
        ),
      );
    const answers = await Promise.all(
      changed.map(async (bytes) => {
        const socket = await server.connect();
        socket.write(bytes);
        return rest(socket);
      }),
    );
    const statuses = answers.map((text) => text.slice(0, 12).replace(/^$/, "nothing"));
    for (const status of statuses) expect(status).toMatch(/^HTTP\/1.1 (200|4\d\d)$|^nothing$/);
    expect(statuses).toContain("HTTP/1.1 400");
    expect((await server.send({ body })).status).toBe(200);
  });

  test("keeps its certificate if another is unusable, and reports it", async () => {
    const [one, two] = await certificates;
    const cut = { cert: `${two.cert}\n${one.cert.slice(0, 200)}\n`, key: two.key };
    expect(await server.tell({ do: "use", pair: cut })).toBe("done");
    await until("the log", () => server.log.includes("the one before it stays"));
    const socket = await server.connect();
    expect(socket.getPeerCertificate().subject.CN).toBe("one");
    socket.destroy();
    expect((await server.send({ body: review() })).status).toBe(200);
  });

  test("answers pending requests before it ends", async () => {
    const idle = await server.connect();
    const left = rest(idle);
    const agent = new Agent({ keepAlive: true, ca: [...server.ca] });
    expect((await server.send({ body: review(), agent })).headers["connection"]).toBe("keep-alive");
    await server.tell({ do: "drain" });
    expect((await server.send({ body: review(), agent })).headers["connection"]).toBe("close");
    const slow = server.send({ body: review("slow") });
    await until("the slow review", () => server.log.includes("waits in namespace slow"));
    await server.tell({ do: "close" });
    expect(await left).toBe("");
    await expect(server.send({ body: review() })).rejects.toThrow("ECONNREFUSED");
    await server.tell({ do: "release" });
    expect(await slow).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect(await server.told()).toBe("closed");
  });
});
