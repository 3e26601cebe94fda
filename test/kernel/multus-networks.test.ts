import { execFileSync } from "node:child_process";
import { join } from "node:path";
import * as fc from "fast-check";
import { root } from "../../build/paths";
import { withNetwork } from "../../controllers/multus/webhook/networks";
import { missing, suite } from "../support/requirements";

const NETWORK = "linkerd-cni";
const NAMESPACE = "shop";

interface Selection {
  readonly name: string;
  readonly namespace: string;
  readonly interface: string;
}

/** Networks that Multus reads in a value. */
interface Reading {
  readonly networks: readonly Selection[];
  readonly error?: string;
}

/** Has Multus' own parser read values. */
function readByMultus(values: readonly string[]): readonly Reading[] {
  const input = values.map((networks) => JSON.stringify({ namespace: NAMESPACE, networks })).join("\n");
  const output = execFileSync(join(root, ".cache", "bin", "multus-parse"), { input, maxBuffer: 1 << 28 });
  return output
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Reading);
}

function extend(value: string): string | undefined {
  try {
    return withNetwork(value, NETWORK, NAMESPACE);
  } catch {
    return undefined;
  }
}

/** Networks that Multus must read afterwards, given those it read before; undefined: it still refuses the value. */
function outcome(value: string, { networks, error }: Reading) {
  const there = /^\p{White_Space}*$/u.test(value) ? [] : networks;
  if (error !== undefined) return { kind: "refused" } as const;
  if (there.some(isOurs)) return { kind: "kept", networks: there } as const;
  return { kind: "extended", networks: [...there, OURS] } as const;
}

const OURS = { name: NETWORK, namespace: NAMESPACE, interface: "" };
const isOurs = ({ name, namespace }: Selection) => name === NETWORK && namespace === NAMESPACE;
/** Mostly what is valid, so that the values are not nearly always refused. */
const usual = (valid: readonly string[], odd: readonly string[]) =>
  fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...valid) }, { weight: 1, arbitrary: fc.constantFrom(...odd) });
const name = usual(["a", "b-1", "b-1", NETWORK], ["", "Upper", "a b", "-x", "x.y", "\u017f"]);
const spaces = usual(["", " ", "\t", "\n"], ["\u00a0", "\u0085", "\ufeff"]);
const wanted = usual(["", "@eth1", "@ eth1 ", "@"], ["@a@b", "@sixteen--letters", "@e/1", "@e\u00a01"]);
const place = usual(["", "", `${NAMESPACE}/`, "other/", " net / "], ["/", "a/b/", "Net/"]);
const item = fc.tuple(spaces, place, name, wanted, spaces).map((parts) => parts.join(""));
const list = fc.array(item, { maxLength: 4 }).map((items) => items.join(","));

const macs = usual(["02:11:22:33:44:55", "0211.2233.4455", ""], ["02-11:22-33-44-55", "02:11", "0:1:2:3:4:5"]);
const addresses = usual(
  ["10.0.0.1", "10.0.0.1/24", "fd00::1/64", "::ffff:10.0.0.1/100", "10.0.0.1/024"],
  ["10.0.0.01", "fe80::1%eth0", "10.0.0.1/33", "10.0.0.1/", ""],
);
/** Names of members that fold to one another, known to Multus or not. */
const folding = fc.constantFrom("x", "X", "s", "S", "\u017f", "k", "\u212a", "ingressRate", "HostPort");
const whole = fc.constantFrom(0, -0, 2 ** 31, 2 ** 53, -(2 ** 62), 2 ** 64, 0.5);
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue(),
  fc.dictionary(folding, fc.oneof(whole, fc.jsonValue({ maxDepth: 1 }))),
);
/** Mostly what belongs there. */
const mostly = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ weight: 30, arbitrary }, odd);
const member = fc.oneof(
  fc.tuple(fc.constantFrom("name", "NAME", "Name"), mostly(name)),
  fc.tuple(fc.constantFrom("namespace", "nameSpace"), mostly(fc.constantFrom("", NAMESPACE, "other", null))),
  fc.tuple(fc.constantFrom("interface", "interfaceRequest", "deviceID"), mostly(fc.constant("eth1"))),
  fc.tuple(fc.constantFrom("mac", "infiniband-guid"), mostly(macs)),
  fc.tuple(fc.constantFrom("ips", "IPS", "default-route"), mostly(fc.array(addresses, { maxLength: 2 }))),
  fc.tuple(fc.constant("cni-args"), mostly(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }))),
  fc.tuple(fc.constant("portMappings"), mostly(fc.constant([{ hostPort: 80, containerPort: 8080, protocol: "tcp" }]))),
  fc.tuple(fc.constant("bandwidth"), mostly(fc.record({ ingressRate: fc.integer() }))),
  fc.tuple(fc.string(), odd),
);
const element = mostly(
  fc.tuple(name, fc.array(member, { maxLength: 3 })).map(([called, members]) => {
    return Object.fromEntries([["name", called], ...members]);
  }),
);
const json = fc
  .tuple(mostly(fc.array(element, { maxLength: 3 })), fc.constantFrom(0, 2), spaces)
  .map(([value, indent, after]) => `${JSON.stringify(value, undefined, indent)}${after}`);
const anything = fc.oneof(list, json, fc.string({ maxLength: 8 }), fc.json());

suite("the networks annotation, read by Multus' own parser", missing({ programs: ["go"] }), () => {
  beforeAll(() => {
    const output = join(root, ".cache", "bin", "multus-parse");
    const cwd = join(root, "test", "tools", "multus-parse");
    // With the flags of the test cluster's Multus, most of it is compiled already.
    const flags = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w"];
    execFileSync("go", ["build", ...flags, "-o", output, "."], { cwd, env: { ...process.env, CGO_ENABLED: "0" } });
  }, 600_000);

  test("what we extend it reads, with all that was there and our network last, unless that was there", () => {
    const seed = process.env["SEED"];
    const values = fc.sample(anything, 20_000).map((value) => ({ value, ours: extend(value) }));
    const before = readByMultus(values.map(({ value }) => value));
    const after = readByMultus(values.map(({ value, ours }) => ours ?? value));
    const seen = { refused: 0, kept: 0, extended: 0 };
    values.forEach(({ value, ours }, index) => {
      const expected = outcome(value, before[index] as Reading);
      seen[expected.kind] += 1;
      const { networks, error } = after[index] as Reading;
      // On one line: of a value that is printed over several lines jest leaves some out.
      const sample = JSON.stringify({ seed, index, value, ours });
      // It still refuses the same values: our change does not turn them into other networks.
      expect({ sample, refuses: error !== undefined }).toEqual({ sample, refuses: expected.kind === "refused" });
      if (expected.kind === "refused") return;
      expect({ sample, networks }).toEqual({ sample, networks: expected.networks });
      expect({ sample, again: extend(ours as string) }).toEqual({ sample, again: ours });
    });
    // None of the three is rare.
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(500);
  });
});
