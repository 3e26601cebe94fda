import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueCertificate } from "../../../controllers/multus/certificates/issue";
import { followFiles } from "../../../controllers/multus/certificates/mounted";
import { ServedCertificate } from "../../../controllers/multus/certificates/served";
import { systemClock } from "../../../process/clock";
import { createLog } from "../../../process/log";
import { Registry } from "../../../process/metrics";
import type { TlsPair } from "../../../system/net";
import { until } from "../../support/until";

const directory = mkdtempSync(join(tmpdir(), "mounted-"));
afterAll(() => rmSync(directory, { recursive: true }));

const names = ["webhook.ns.svc"];
const fast = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 500, signal) };

/** Replaces the files as a kubelet does: all at once, by a link. */
function mount(version: string, { cert, key }: TlsPair): void {
  mkdirSync(join(directory, version));
  writeFileSync(join(directory, version, "tls.crt"), cert);
  writeFileSync(join(directory, version, "tls.key"), key);
  symlinkSync(version, join(directory, "next"));
  renameSync(join(directory, "next"), join(directory, "data"));
}

test("follows the files, waits for them, and keeps the current pair while they do not match", async () => {
  const [one, two] = [1e8, 2e8].map((validMs) => issueCertificate(names, new Date(), validMs)) as [TlsPair, TlsPair];
  const used: TlsPair[] = [];
  const log: string[] = [];
  const registry = new Registry("linkerd_multus_");
  const stopping = new AbortController();
  const logger = createLog("info", "plain", (line) => log.push(line));
  const served = new ServedCertificate({
    log: logger,
    registry,
    use: (pair) => used.push(pair),
  });
  const { signal } = stopping;
  const deps = { served, clock: fast, log: logger, signal };
  const done = followFiles(join(directory, "data"), deps);
  await until("the certificate", () => log.some((line) => line.includes("no such file")));
  mount("1", one);
  await until("the certificate", () => used.length === 1);
  mount("torn", { cert: two.cert, key: one.key });
  await until("the certificate", () => log.some((line) => line.includes("key values mismatch")));
  mount("cut", { cert: `${two.cert}${one.cert.slice(0, 200)}\n`, key: two.key });
  await until("the certificate", () => log.some((line) => line.includes("bad end line")));
  mount("2", two);
  await until("the certificate", () => used.length === 2);
  stopping.abort();
  await done;
  expect(used.map(({ key }) => key)).toEqual([one.key, two.key]);
  expect(log.filter((line) => line.includes("no such file"))).toHaveLength(1);
  const metrics = registry.text();
  expect(metrics).toContain("linkerd_multus_certificate_rotations_total 1\n");
  const expiry = Number(/expiry_timestamp_seconds (\d+)/.exec(metrics)?.[1]);
  expect(Math.abs(expiry - (Date.now() + 2e8) / 1000)).toBeLessThan(3_600);
});
