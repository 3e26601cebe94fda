import fc from "fast-check";
import { decide } from "./decide";
import { readPodName, readTarget } from "./environment";
import { CniError, printable, quoted, reasonOf, shortened } from "./errors";
import { parseNetworkConfig } from "./network-config";
import { parseStanza } from "./parse-stanza";
import { requireSupported } from "./versions";

const LONG = "a".repeat(250_000);

describe("a value in a message", () => {
  it.each([
    ["", '""'],
    ['a"\n', '"a\\"\\n"'],
    ["a".repeat(80), `"${"a".repeat(80)}"`],
    [LONG, `"${"a".repeat(80)}…" (250000 characters)`],
    [`${"a".repeat(79)}😀b`, `"${"a".repeat(79)}…" (82 characters)`],
    [`${"a".repeat(78)}😀b`, `"${"a".repeat(78)}😀…" (81 characters)`],
  ])("%j is truncated after eighty characters", (given, wanted) => expect(quoted(given)).toBe(wanted));

  it("is short and well-formed, whatever its source", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (given) => {
        for (const shown of [quoted(given), shortened(given)]) {
          expect(Buffer.from(shown).toString()).toBe(shown);
          expect(shown.length).toBeLessThanOrEqual(6 * 80 + 30);
        }
      }),
    );
  });
});

describe("a text that is printed", () => {
  it.each([
    ["as it is: ä 漢字 😀\n\tb", "as it is: ä 漢字 😀\n\tb"],
    ["\u001b[31m\u0000\r\u007f", "\\u001b[31m\\u0000\\u000d\\u007f"],
    ["\u0085\u009b2J", "\\u0085\\u009b2J"],
    ["a\u202egpj.exe\u2066\u200f\u061c", "a\\u202egpj.exe\\u2066\\u200f\\u061c"],
    ["a\u2028b\u2029c", "a\\u2028b\\u2029c"],
    ["\u{e0041}\ufeff", "\\udb40\\udc41\\ufeff"],
  ])("%j", (given, wanted) => expect(printable(given)).toBe(wanted));

  it("is equivalent JSON", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (given) => {
        expect(JSON.parse(printable(JSON.stringify(given)))).toBe(given);
      }),
    );
  });
});

it("the engine throws null when memory runs out", () => {
  expect([reasonOf(null), reasonOf(undefined), reasonOf(new Error("x"))]).toEqual([
    "out of memory",
    "out of memory",
    "x",
  ]);
});

const env = { CNI_CONTAINERID: "c", CNI_NETNS: "n", CNI_IFNAME: "e", CNI_PATH: "/" };
const pod = { namespace: "shop", name: "cart", labels: {}, containers: ["linkerd-proxy"], initContainers: [] };
const decideWith = (annotations: Record<string, string>, linkerd: object = {}, name = "pods") =>
  decide({ ...pod, annotations }, {}, parseStanza({ linkerd: linkerd as never }, name));

it.each<[string, () => unknown]>([
  ["a container id", () => readTarget({ ...env, CNI_CONTAINERID: `/${LONG}` }, "ADD")],
  ["an interface name", () => readTarget({ ...env, CNI_IFNAME: LONG }, "ADD")],
  ["a pod's name", () => readPodName({ CNI_ARGS: `K8S_POD_NAMESPACE=a;K8S_POD_NAME=${LONG}` })],
  ["a version", () => requireSupported(LONG, "prevResult")],
  ["a network's name", () => parseNetworkConfig(JSON.stringify({ name: `/${LONG}` }))],
  ["invalid JSON", () => parseNetworkConfig(LONG)],
  ["a port", () => decideWith({ "config.linkerd.io/skip-inbound-ports": LONG })],
  ["a network", () => decideWith({ "config.linkerd.io/skip-subnets": LONG })],
  ["an id", () => decideWith({ "config.linkerd.io/proxy-uid": LONG })],
  ["an item of the configuration", () => decideWith({}, { "inbound-ports-to-ignore": [LONG] }, LONG)],
  ["a field of the configuration", () => decideWith({}, { "iptables-mode": LONG })],
  ["a member that is a text", () => decideWith({}, { "ports-to-redirect": [LONG] })],
])("an error about %s of 250 KB is short", (_, fails) => {
  expect.assertions(2);
  try {
    fails();
  } catch (error) {
    expect(error).toBeInstanceOf(CniError);
    expect((error as CniError).message.length).toBeLessThan(600);
  }
});
