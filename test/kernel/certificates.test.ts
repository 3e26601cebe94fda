/**
 * Chains of certificates of every kind, judged by the C host as by Go's verifier, which linkerd's plugin trusts. More
 * chains: CHAINS=6000; other ones: SEED=random.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { sanitized } from "../support/host";
import { missing, suite } from "../support/requirements";
import { type Chain, isTrusted, type Verdict } from "../support/trust/chains";

jest.setTimeout(1_200_000);

const CHAINS = Number(process.env["CHAINS"] ?? 600);
/** As many as one process judges: its memory has a limit. */
const BATCH = 300;
const FIRST = fc.readConfigureGlobal()?.seed ?? 1;
const seeds = Array.from({ length: Math.ceil(CHAINS / BATCH) }, (_, at) => FIRST + at);

/** How judging differs from Go's by intention: docs/contribute/decisions.md. */
function isIntended({ trusted, unreadable, why }: Chain, { problem }: Verdict): boolean {
  // Go gives up at a malformed constraint anywhere; here only the certificates that the path has are judged.
  if (unreadable && /constraint/.test(why)) return true;
  // Policies, and names other than DNS names and addresses, are not judged; what would need it is refused.
  if (!trusted) return /polic|URI|mail|rfc822/i.test(why);
  return /critical extension (policy|inhibitAnyPolicy)|constraint on (e-mail addresses|URIs)/.test(problem);
}

suite("chains of certificates", missing({ programs: ["go"] }), () => {
  let directory: string;
  let maker: string;
  let judge: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "certificates-"));
    [maker, judge] = [join(directory, "maker"), join(directory, "judge")];
    const cwd = join(root, "test", "tools", "certificates");
    execFileSync("go", ["build", "-o", maker, "."], { cwd, env: { ...process.env, CGO_ENABLED: "0" } });
    const folder = join(root, "test", "support", "trust");
    const main = join(folder, "main.ts");
    await buildExecutable(judge, { main, programs: { judge: main }, tls: join(folder, "verify.c"), sanitized });
  });
  afterAll(() => rm(directory, { recursive: true }));

  it.each(seeds)("are trusted as by Go: seed %d", (seed) => {
    const options = { encoding: "utf8", maxBuffer: 256 * 1024 * 1024 } as const;
    const input = execFileSync(maker, [`${seed}`, `${BATCH}`], options);
    const chains = JSON.parse(input) as readonly Chain[];
    const verdicts = JSON.parse(execFileSync(judge, ["judge"], { ...options, input, env: {} })) as readonly Verdict[];
    const differ = chains.flatMap((chain, at) => {
      const verdict = verdicts[at] ?? { error: 1, flags: 0, problem: "no verdict" };
      if (isTrusted(verdict) === chain.trusted || isIntended(chain, verdict)) return [];
      const { name, trusted, why, made } = chain;
      return [{ name, trusted, why, made, verdict }];
    });
    expect(differ).toEqual([]);
    // The test would say nothing if all were refused.
    expect(chains.filter(({ trusted }) => trusted).length).toBeGreaterThan(BATCH / 5);
  });
});
