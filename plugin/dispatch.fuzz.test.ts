/** For any input: no crash, at most one JSON document, and no rules unless the call succeeds. */
import fc from "fast-check";
import { POD_ANNOTATIONS } from "../cni/stanza";
import { VERBS } from "../cni/verbs";
import { VERSIONS } from "../cni/versions";
import { FakeHost, response } from "../host/fake.testing";
import { dispatch } from "./dispatch";
import { environment, NETNS } from "./protocol-cases.testing";

const RUNS = 600;

const pod = (annotations: unknown, labels: unknown) =>
  JSON.stringify({
    kind: "Pod",
    metadata: { name: "cart-1", annotations, labels },
    spec: { containers: [{ name: "linkerd-proxy" }] },
  });

const namespace = JSON.stringify({ kind: "Namespace", metadata: { name: "shop" } });

/** Runs a call and checks the invariants of every call. */
function expectSane(env: Record<string, string>, stdin: string, podObject: string): void {
  const api = (path: string) => response(200, path.endsWith("/namespaces/shop") ? namespace : podObject);
  const host = new FakeHost({ env, stdin, namespaces: [NETNS], api });
  const { stdout, status, record } = dispatch(host);
  const document = stdout === "" ? undefined : JSON.parse(stdout);
  if (status === 1) {
    expect(document).toEqual({
      cniVersion: expect.any(String),
      code: expect.any(Number),
      msg: expect.any(String),
      details: expect.any(String),
    });
    expect(document.code).not.toBe(102);
    if (env["CNI_COMMAND"] !== "CHECK") expect(host.sent).toEqual([]);
  } else if (env["CNI_COMMAND"] === "ADD") {
    expect(VERSIONS).toContain(document.cniVersion);
  }
  if (record !== undefined) expect(JSON.parse(record)).toHaveProperty("verb", env["CNI_COMMAND"]);
}

const anyText = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.constantFrom("", "\0", "\n", "0", "true"));
const anyJson = fc.jsonValue({ maxDepth: 4 });
const likely = {
  cniVersion: fc.constantFrom(...VERSIONS, "", "9", 1, null),
  name: fc.constantFrom("pods", "", "a/b", 1),
  linkerd: fc.oneof(
    anyJson,
    fc.record(
      {
        "incoming-proxy-port": fc.oneof(fc.integer(), anyJson),
        "proxy-uid": fc.oneof(fc.integer(), anyJson),
        "ports-to-redirect": fc.oneof(fc.array(fc.integer()), anyJson),
        "inbound-ports-to-ignore": fc.oneof(fc.array(anyText), anyJson),
        "subnets-to-ignore": fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), anyText).map((address) => `${address}/8`)),
        "iptables-mode": fc.constantFrom("auto", "native", "nft", "x"),
        "redirect-mode": fc.constantFrom("auto", "native", "nft"),
        ipv6: fc.oneof(fc.boolean(), anyJson),
      },
      { requiredKeys: [] },
    ),
  ),
  kubernetes: fc.oneof(fc.constant({ kubeconfig: "/k" }), anyJson),
  runtimeConfig: fc.oneof(
    anyJson,
    fc.record({ [POD_ANNOTATIONS]: fc.oneof(anyJson, fc.dictionary(anyText, anyText)) }),
  ),
  "own-pods": anyJson,
  "pod-lookup": fc.constantFrom("auto", "api", "annotations", 1),
  prevResult: fc.oneof(
    anyJson,
    fc.record(
      {
        cniVersion: fc.constantFrom(...VERSIONS),
        interfaces: anyJson,
        ips: fc.array(anyJson),
        routes: fc.array(anyJson),
      },
      { requiredKeys: [] },
    ),
  ),
  "cni.dev/valid-attachments": anyJson,
  "strict-status": fc.boolean(),
};
const configuration = fc.record(likely, { requiredKeys: ["cniVersion", "name"] });
const variables = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH", "CNI_ARGS"];
const settings = [
  "skip-inbound-ports",
  "skip-outbound-ports",
  "skip-subnets",
  "skip-inbound-subnets",
  "skip-outbound-subnets",
  "proxy-uid",
  "proxy-gid",
];
const annotationKeys = [...settings.map((name) => `config.linkerd.io/${name}`), "linkerd.io/created-by"];
const annotationValue = fc.oneof(
  anyText,
  fc
    .array(
      fc.oneof(
        fc.nat(70_000).map(String),
        fc.tuple(fc.nat(70_000), fc.nat(70_000)).map(([a, b]) => `${a}-${b}`),
      ),
    )
    .map(String),
  fc.ipV6().map((address) => `${address}/64`),
);
const verb = fc.constantFrom(...VERBS);

describe("any call", () => {
  it("with any standard input", () => {
    const input = fc.oneof(
      anyText,
      anyJson.map((value) => JSON.stringify(value)),
      configuration.map((value) => JSON.stringify(value)),
    );
    const property = fc.property(verb, input, (command, stdin) =>
      expectSane({ ...environment, CNI_COMMAND: command }, stdin, pod({}, {})),
    );
    fc.assert(property, { numRuns: 2 * RUNS });
  }, 120_000);

  it("with any environment", () => {
    const values = fc.dictionary(fc.constantFrom(...variables), anyText);
    const property = fc.property(fc.oneof(verb, anyText), values, (command, env) =>
      expectSane({ ...environment, ...env, CNI_COMMAND: command }, '{"cniVersion":"1.1.0","name":"pods"}', pod({}, {})),
    );
    fc.assert(property, { numRuns: RUNS });
  }, 120_000);

  it("for a pod with any annotations", () => {
    const annotations = fc.dictionary(fc.constantFrom(...annotationKeys), annotationValue);
    const stdin = JSON.stringify({
      cniVersion: "1.0.0",
      name: "pods",
      linkerd: { ipv6: true },
    });
    const property = fc.property(annotations, (found) => expectSane(environment, stdin, pod(found, {})));
    fc.assert(property, { numRuns: 2 * RUNS });
  }, 120_000);

  it("with any answer of the API server", () => {
    const stdin = JSON.stringify({ cniVersion: "1.0.0", name: "pods" });
    const body = fc.oneof(
      anyText,
      anyJson.map((value) => JSON.stringify(value)),
      fc.tuple(anyJson, anyJson).map(([annotations, labels]) => pod(annotations, labels)),
      anyJson.map((spec) => JSON.stringify({ kind: "Pod", metadata: { name: "cart-1" }, spec })),
    );
    fc.assert(
      fc.property(body, (answer) => expectSane(environment, stdin, answer)),
      { numRuns: RUNS },
    );
  }, 120_000);
});
