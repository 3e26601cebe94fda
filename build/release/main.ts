import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Command, Option } from "commander";
import pc from "picocolors";
import { aligned } from "../../cli/aligned";
import { outputs, root } from "../paths";
import { Progress } from "../progress";
import type { Sources } from "./artifacts";
import { workflowIdentity } from "./provenance";
import { type Row, release } from "./release";

interface Flags {
  readonly registry: string;
  readonly plainHttp: boolean;
  readonly dist?: string;
  readonly npm?: string;
  readonly npmRegistry?: string;
  readonly key?: string;
  readonly certificateIdentity?: string;
  readonly certificateOidcIssuer?: string;
  readonly signingConfig?: string;
  readonly trustedRoot?: string;
  readonly dryRun: boolean;
  readonly allowDirty: boolean;
  readonly output: "table" | "json";
}

/** The released parts of a folder laid out like `dist`. */
const sourcesIn = (dist: string): Sources => ({
  image: join(dist, "image", basename(outputs.image)),
  charts: join(dist, "charts"),
  cli: join(dist, "bin", basename(outputs.cli)),
});

/** The report as a table. */
const table = (rows: readonly Row[]): string =>
  aligned([
    ["ARTIFACT", "REFERENCE", "DIGEST", "CONTENT", "SIGNATURE", "SBOM", "PROVENANCE"],
    ...rows.map(({ name, reference, digest, content, signature = "-", sbom = "-", provenance = "-" }) => [
      ...[name, reference, digest, content, signature, sbom, provenance],
    ]),
  ]);

async function main(flags: Flags): Promise<void> {
  const { registry, plainHttp, dist, dryRun, allowDirty, npm, npmRegistry } = flags;
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
  const { identity, issuer } = workflowIdentity(process.env) ?? {};
  const signing = Object.entries({
    key: flags.key,
    identity: flags.certificateIdentity ?? identity,
    issuer: flags.certificateOidcIssuer ?? issuer,
    signingConfig: flags.signingConfig,
    trustedRoot: flags.trustedRoot,
  });
  const work = await mkdtemp(join(tmpdir(), "linkerd-cni-release-"));
  try {
    const rows = await release(
      {
        version,
        sources: dist === undefined ? outputs : sourcesIn(dist),
        registry,
        plainHttp,
        ...(npm === undefined ? {} : { npm: { directory: npm } }),
        ...(npmRegistry === undefined ? {} : { npm: { registry: npmRegistry } }),
        signing: Object.fromEntries(signing.filter(([, value]) => value !== undefined)),
        dryRun,
        allowDirty,
        env: process.env,
        work,
      },
      new Progress(process.stderr),
    );
    const json = () => `${JSON.stringify({ version, registry, dryRun, artifacts: rows }, undefined, 2)}\n`;
    process.stdout.write(flags.output === "json" ? json() : table(rows));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** A registry as oras, cosign and Helm name it: without a scheme. */
function registryBase(text: string): string {
  const base = text.replace(/\/+$/, "");
  if (/^[\w.-]+(:\d+)?(\/[a-z0-9._-]+)*$/.test(base)) return base;
  throw new Error(`--registry ${text}: give host and path without a scheme, as in ghcr.io/example`);
}

const command = new Command("npm run release --")
  .description("Pushes image, charts and CLI to a registry, signs them, attests what they are made of and from.")
  .requiredOption("--registry <host/path>", "where to push, as ghcr.io/example", registryBase)
  .option("--plain-http", "the registry speaks HTTP without TLS", false)
  .option("--dist <directory>", "release what was built elsewhere and lies there (default: dist)")
  .addOption(new Option("--npm <directory>", "write the npm package's tarball there").conflicts("npmRegistry"))
  .option("--npm-registry <url>", "publish the npm package there")
  .option("--key <file>", "sign with this private key of cosign; its password is in COSIGN_PASSWORD")
  .option("--certificate-identity <identity>", "keyless: whom the certificate names (default: the workflow of GitHub)")
  .option("--certificate-oidc-issuer <url>", "keyless: who vouches for that identity (default: GitHub)")
  .option("--signing-config <file>", "services of a Sigstore of your own, as cosign takes it (default: the public one)")
  .option("--trusted-root <file>", "keys and certificates of a Sigstore of your own, as cosign takes it")
  .option("--allow-dirty", "release although files differ from the commit; the provenance says so", false)
  .option("--dry-run", "print the table, push nothing", false)
  .addOption(new Option("-o, --output <format>", "of the report").choices(["table", "json"]).default("table"))
  .action(main);
command.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${pc.red("release:")} ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
