/** Credentials that damaged files and requests hold: no message quotes a part of what must stay secret. */
import fc from "fast-check";
import { readConfig } from "../../cni/conflist/read";
import { httpsTransport } from "../../kubernetes/transport";

const RUNS = 600;
/** A piece of this length tells something. */
const PIECE = 8;

/** Characters without a pattern, the same in every run. */
function secretText(length: number, seed: number, alphabet: string): string {
  let state = seed;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return alphabet[(state >>> 8) % alphabet.length];
  }).join("");
}
const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE = BASE64.replace("+/", "-_");
const token = [120, 500, 342].map((length, at) => secretText(length, at + 1, URL_SAFE)).join(".");
const key = secretText(1600, 7, BASE64);
const password = `${secretText(40, 8, URL_SAFE)}: [${secretText(40, 9, BASE64)}`;
const secrets = [token, key, password];

const pieces = new Set(
  secrets.flatMap((secret) =>
    Array.from({ length: secret.length - PIECE + 1 }, (_, at) => secret.slice(at, at + PIECE)),
  ),
);

/** The first piece of a secret that a text holds. */
function leak(text: string): string | undefined {
  for (let at = 0; at + PIECE <= text.length; at++) {
    const piece = text.slice(at, at + PIECE);
    if (pieces.has(piece)) return piece;
  }
  return undefined;
}

/** Strings that break YAML and JSON, and strings that do not. */
const STROKES = [
  '"',
  "'",
  ":",
  ": ",
  "\n",
  "\n  ",
  "{",
  "}",
  "[",
  "]",
  "&a ",
  "*a",
  "!t ",
  "%",
  "@",
  "#",
  "|\n",
  "\t",
  "\0",
  "- ",
  "",
  "é",
  "\r",
];

interface Damage {
  readonly at: number;
  readonly removed: number;
  readonly put: string;
}
const damage = fc.record<Damage>({
  at: fc.nat({ max: 10_000 }),
  removed: fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 3 }) }, fc.nat({ max: 3000 })),
  put: fc.constantFrom(...STROKES),
});

function damaged(text: string, strokes: readonly Damage[]): string {
  return strokes.reduce((now, { at, removed, put }) => {
    const from = at % (now.length + 1);
    return now.slice(0, from) + put + now.slice(from + removed);
  }, text);
}

describe("credentials", () => {
  it("stand in no message of a request with a token that no header may hold", async () => {
    const wrong = { host: "127.0.0.1", port: 1, ca: "", token: `${token}\r\nX: ${key}` };
    const call = { path: "/", deadlineMs: 1000 };
    const message = await httpsTransport(wrong)(call).catch((error: Error) => error.message);
    expect(message).toContain("the token holds a character that no token has");
    expect(leak(String(message))).toBeUndefined();
  });

  it("stand in no message about a network configuration that is not JSON", () => {
    const list = JSON.stringify({
      name: "pods",
      plugins: [{ type: "calico", policy: { k8s_auth_token: token, password } }],
    });
    fc.assert(
      fc.property(fc.array(damage, { minLength: 1, maxLength: 3 }), (strokes) => {
        const read = readConfig("10-calico.conflist", Buffer.from(damaged(list, strokes)));
        if (read.kind === "invalid") expect(leak(read.reason)).toBeUndefined();
      }),
      { numRuns: RUNS },
    );
  });
});
