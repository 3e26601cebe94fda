import { generate } from "selfsigned";
import { readAuthority, readPair, readServingCertificate } from "./certificate";

const NAME = "linkerd-multus-webhook.ops.svc";
const DAY_MS = 86_400_000;
const MADE = new Date("2026-01-01T00:00:00Z");

interface Made {
  readonly cert: string;
  readonly private: string;
}

interface Wanted {
  readonly by?: Made;
  readonly isCa?: boolean;
  /** Names beside the common one. */
  readonly names?: readonly string[];
  readonly days?: number;
}

function make(name: string, { by, isCa = false, names = [], days = 30 }: Wanted): Promise<Made> {
  return generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    notBeforeDate: MADE,
    notAfterDate: new Date(MADE.getTime() + days * DAY_MS),
    ...(by === undefined ? {} : { ca: { cert: by.cert, key: by.private } }),
    extensions: [
      { name: "basicConstraints", cA: isCa, critical: true },
      ...(names.length === 0
        ? []
        : [{ name: "subjectAltName" as const, altNames: names.map((value) => ({ type: 2 as const, value })) }]),
    ],
  });
}

const read = (leaf: Made, between: readonly Made[], authorities: readonly Made[]) => {
  const cert = [leaf, ...between].map((each) => `${each.cert}\n`).join("");
  const trusted = authorities.map((each) => each.cert);
  return readServingCertificate({ cert, key: leaf.private }, "tls", { name: NAME, authorities: trusted });
};

let root: Made;
let other: Made;

beforeAll(async () => {
  [root, other] = (await Promise.all(["root", "other"].map((name) => make(name, { isCa: true })))) as [Made, Made];
});

test("the name by which the API server calls is enough", async () => {
  const leaf = await make("leaf", { by: root, names: [NAME] });
  expect(read(leaf, [], [other, root]).ca).toBe(root.cert);
  const wild = await make("wild", { by: root, names: ["*.ops.svc"] });
  expect(read(wild, [], [root]).ca).toBe(root.cert);
});

test("a common name is none, as for the API server", async () => {
  const leaf = await make(NAME, { by: root });
  expect(() => read(leaf, [], [root])).toThrow(`tls.crt is not valid for ${NAME}`);
});

test("a chain leads to the authority, in any order, and lasts as long as its shortest link", async () => {
  const outer = await make("outer", { by: root, isCa: true, days: 20 });
  const inner = await make("inner", { by: outer, isCa: true });
  const leaf = await make("leaf", { by: inner, names: [NAME] });
  expect(read(leaf, [inner, outer], [root])).toMatchObject({ ca: root.cert, validTo: MADE.getTime() + 20 * DAY_MS });
  expect(read(leaf, [outer, other, inner], [root]).ca).toBe(root.cert);
  // An authority need not be one that signed itself.
  expect(read(leaf, [], [inner]).ca).toBe(inner.cert);
  expect(() => read(leaf, [inner], [root])).toThrow("tls.crt does not lead to a certificate in ca.crt");
  expect(() => read(leaf, [inner, outer], [other])).toThrow("tls.crt does not lead to a certificate in ca.crt");
});

test.each([
  ["garbled", (pem: string) => pem.replace(/\n.{20}/, "\n!!!!")],
  ["cut off", (pem: string) => pem.slice(0, pem.length / 2)],
])("a certificate after the first that is %s is refused, as the whole is when it is to be shown", async (_, spoil) => {
  const leaf = await make("leaf", { by: root, names: [NAME] });
  const pair = { cert: `${leaf.cert}\n${spoil(root.cert)}\n`, key: leaf.private };
  expect(() => readPair(pair, "tls")).toThrow("tls.crt and tls.key: ");
});

test("only authorities sign", async () => {
  const fake = await make("fake", { by: root });
  const leaf = await make("leaf", { by: fake, names: [NAME] });
  expect(() => read(leaf, [fake], [root])).toThrow("does not lead to");
});

test("one that signed itself is trusted where it is its own authority", async () => {
  const leaf = await make("self", { names: [NAME] });
  expect(read(leaf, [], [leaf]).ca).toBe(leaf.cert);
  expect(() => read(leaf, [], [root])).toThrow("does not lead to");
});

test("the authority that a key belongs to is found among those that are trusted", () => {
  const [rootCa, otherCa] = [`${root.cert}\n`, `${other.cert}\n`];
  expect(readAuthority(other.private, [rootCa, otherCa])).toEqual({
    ...{ cert: otherCa, key: other.private },
    ...{ validFrom: MADE.getTime(), validTo: MADE.getTime() + 30 * DAY_MS },
  });
  expect(readAuthority(other.private, [rootCa])).toBeUndefined();
  expect(readAuthority("", [rootCa])).toBeUndefined();
  expect(readAuthority("no key", [rootCa])).toBeUndefined();
});

test("a key of a certificate that is no authority's signs nothing", async () => {
  const self = await make("self", { names: [NAME] });
  expect(readAuthority(self.private, [self.cert])).toBeUndefined();
});
