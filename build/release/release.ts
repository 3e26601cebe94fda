import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MEDIA } from "../image/layout";
import { root } from "../paths";
import type { Progress } from "../progress";
import { type Artifact, artifacts, type Sources } from "./artifacts";
import { BILL_OF_MATERIALS, Cosign, PROVENANCE, SIGNATURE, type Signing } from "./cosign";
import { difference } from "./difference";
import { execute, missingPrograms } from "./execute";
import { findNpm, type NpmPackage, type NpmTarget, npmReference, PACKAGES, packNpm, publishNpm } from "./npm";
import { provenance, type Source } from "./provenance";
import { Registry } from "./registry";

/** Options of a release. */
export interface ReleaseOptions {
  readonly version: string;
  readonly sources: Sources;
  /** Host and path, without a scheme. */
  readonly registry: string;
  readonly plainHttp: boolean;
  /** @default the npm package is not released */
  readonly npm?: NpmTarget;
  readonly signing: Signing;
  /** Only report what would be done. */
  readonly dryRun: boolean;
  /** Release although files differ from the commit, which the provenance then says. */
  readonly allowDirty: boolean;
  /** Of the build, for the provenance. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For files that are gone afterwards. */
  readonly work: string;
}

/** The result for one part: past tense if it was done, else what would be done. */
export type PushOutcome =
  | "unchanged"
  | "pushed"
  | "to push"
  | "signed"
  | "to sign"
  | "attested"
  | "to attest"
  | "published"
  | "to publish";

/** One line of the report. */
export interface Row {
  readonly name: string;
  readonly reference: string;
  readonly digest: string;
  readonly content: PushOutcome;
  readonly signature?: PushOutcome;
  readonly sbom?: PushOutcome;
  readonly provenance?: PushOutcome;
}

/** A subject to sign, with its attestations. */
interface Subject {
  readonly row: Pick<Row, "name" | "reference" | "digest">;
  readonly artifact: Artifact;
  /** Files of the predicates. */
  readonly sbom?: string;
  readonly provenance?: string;
}

/**
 * Publishes a version. Existing artifacts do not change. Nothing is pushed if the version has different content, and
 * nothing twice. @throws with all problems found before the first push
 */
export async function release(options: ReleaseOptions, progress: Progress): Promise<readonly Row[]> {
  const { dryRun, plainHttp, work } = options;
  const source = await progress.step("programs and sources", () => prepare(options));
  const cosign = await Cosign.from(options.signing, plainHttp, work);
  if (cosign === undefined && !dryRun) {
    throw new Error(
      "nothing to sign with: give --key FILE, or run where the CI vouches for an identity (see docs/release.md)",
    );
  }
  const made = await progress.step("artifacts", () => artifacts(options.sources, options.version, work));
  const packed: NpmPackage[] = [];
  for (const folder of options.npm === undefined ? [] : PACKAGES)
    packed.push(await progress.step("npm package", () => packNpm(folder, work)));
  const registry = new Registry(options.registry, plainHttp);
  const missing = await progress.step("comparison with what is published", () =>
    compare(options, registry, made, packed),
  );

  const pushed = new Map<Artifact, PushOutcome>();
  for (const artifact of made) {
    if (!missing.artifacts.has(artifact)) pushed.set(artifact, "unchanged");
    else if (dryRun) pushed.set(artifact, "to push");
    else {
      await progress.step(`push ${artifact.name}`, () => registry.push(artifact));
      pushed.set(artifact, "pushed");
    }
  }
  const rows: Row[] = [];
  for (const subject of await subjects(options, source, registry, made)) {
    const content = pushed.get(subject.artifact) ?? "unchanged";
    const sign = new Signer(cosign, dryRun, content === "to push", progress, subject);
    rows.push({ ...subject.row, content, ...(await sign.all()) });
  }
  for (const each of packed)
    if (options.npm !== undefined)
      rows.push(await publish(options.npm, each, missing.packages.has(each), options, progress));
  return rows;
}

/** Checks the requirements of a release. @returns its commit */
async function prepare({ allowDirty, npm, dryRun, version, env, signing }: ReleaseOptions): Promise<Source> {
  const signs = !dryRun || signing.key !== undefined || signing.identity !== undefined;
  const names = ["git", "oras", ...(npm === undefined ? [] : ["npm"]), ...(signs ? ["cosign"] : [])];
  const problems = [...(await missingPrograms(names))];
  if (env["GITHUB_REF_TYPE"] === "tag" && env["GITHUB_REF_NAME"] !== `v${version}`) {
    problems.push(`the tag is ${env["GITHUB_REF_NAME"]}, but package.json has version ${version}: tag v${version}`);
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const git = async (...args: readonly string[]) => (await execute("git", args, { cwd: root })).toString().trim();
  const [commit, changes] = [await git("rev-parse", "HEAD"), await git("status", "--porcelain")];
  if (changes !== "" && !allowDirty) {
    throw new Error(`files differ from the commit: commit them, or add --allow-dirty\n${changes}`);
  }
  return { commit, dirty: changes !== "" };
}

interface Missing {
  readonly artifacts: ReadonlySet<Artifact>;
  readonly packages: ReadonlySet<NpmPackage>;
}

/** Looks each version up. @returns missing ones @throws if one has different content, with the differences */
async function compare(
  { npm, work }: ReleaseOptions,
  registry: Registry,
  made: readonly Artifact[],
  packed: readonly NpmPackage[],
): Promise<Missing> {
  const missing = new Set<Artifact>();
  const conflicts: string[] = [];
  for (const artifact of made) {
    const found = await registry.find(artifact);
    if (found === undefined) missing.add(artifact);
    else if (found.digest !== artifact.digest) {
      const own = async ({ digest }: { digest: string }) => artifact.blobs.get(digest) ?? Buffer.alloc(0);
      const ours = { mediaType: MEDIA.manifest, digest: artifact.digest, size: 0 };
      const what = await difference([ours, own], [found, (descriptor) => registry.read(artifact, descriptor)]);
      conflicts.push(conflict(`${registry.nameOf(artifact)}:${artifact.tag}`, found.digest, artifact.digest, what));
    }
  }
  const packages = new Set<NpmPackage>();
  for (const each of packed) {
    if (npm === undefined) break;
    const differs = await findNpm(npm, each, work);
    if (differs === undefined) packages.add(each);
    else if (differs.length > 0) conflicts.push(conflict(npmReference(npm, each), "published", each.digest, differs));
  }
  if (conflicts.length > 0) {
    const what = conflicts.join("\n");
    throw new Error(
      `a version is published once: raise the version, or build what was published. Nothing was pushed\n${what}`,
    );
  }
  return { artifacts: missing, packages };
}

/** Maximum number of useful lines. */
const SHOWN = 12;

function conflict(reference: string, theirs: string, ours: string, what: readonly string[]): string {
  const shown = what.slice(0, SHOWN).map((line) => `    ${line}\n`);
  const rest = what.length > SHOWN ? `    and ${what.length - SHOWN} more\n` : "";
  return `  ${reference} is ${theirs}, this is ${ours}; these differ:\n${shown.join("")}${rest}`.trimEnd();
}

/** The subjects to sign: an image as a whole, and each platform's by itself, since either may be named by its digest. */
async function subjects(
  { version, env, work }: ReleaseOptions,
  source: Source,
  registry: Registry,
  made: readonly Artifact[],
): Promise<readonly Subject[]> {
  const statement = join(work, "provenance.json");
  await writeFile(statement, JSON.stringify(provenance(source, version, env)));
  const found: Subject[] = [];
  for (const artifact of made) {
    const { name, digest, tag, platforms = [] } = artifact;
    const reference = `${registry.nameOf(artifact)}:${tag}`;
    const whole = { name, digest, billOfMaterials: artifact.billOfMaterials };
    const each = platforms.map(({ platform, ...its }) => ({ name: `${name} ${platform}`, ...its }));
    for (const { name: called, digest: its, billOfMaterials } of [whole, ...each]) {
      const sbom = join(work, `${called.replace(/\W/g, "-")}.cdx.json`);
      if (billOfMaterials !== undefined) await writeFile(sbom, billOfMaterials);
      const row = { name: called, reference, digest: its };
      found.push({ row, artifact, provenance: statement, ...(billOfMaterials === undefined ? {} : { sbom }) });
    }
  }
  return found;
}

/** Signs one subject unless it is already signed. */
class Signer {
  private readonly reference: string;

  constructor(
    private readonly cosign: Cosign | undefined,
    private readonly dryRun: boolean,
    /** Not in the registry, since a dry run does not push. */
    private readonly absent: boolean,
    private readonly progress: Progress,
    private readonly subject: Subject,
  ) {
    const { reference, digest } = subject.row;
    this.reference = `${reference.slice(0, reference.lastIndexOf(":"))}@${digest}`;
  }

  async all(): Promise<Pick<Row, "signature" | "sbom" | "provenance">> {
    const { row, sbom, provenance } = this.subject;
    const attested = async (type: string, title: string, file: string) =>
      this.ensure(type, ["attested", "to attest"], `${title} of ${row.name}`, (cosign) =>
        cosign.attest(this.reference, type, file),
      );
    return {
      signature: await this.ensure(SIGNATURE, ["signed", "to sign"], `signature of ${row.name}`, (cosign) =>
        cosign.sign(this.reference),
      ),
      ...(sbom === undefined ? {} : { sbom: await attested(BILL_OF_MATERIALS, "SBOM", sbom) }),
      ...(provenance === undefined ? {} : { provenance: await attested(PROVENANCE, "provenance", provenance) }),
    };
  }

  private async ensure(
    type: string,
    [done, due]: readonly [PushOutcome, PushOutcome],
    title: string,
    make: (cosign: Cosign) => Promise<void>,
  ): Promise<PushOutcome> {
    const { cosign } = this;
    if (cosign !== undefined && !this.absent && (await cosign.has(this.reference, type))) return "unchanged";
    if (this.dryRun || cosign === undefined) return due;
    await this.progress.step(title, () => make(cosign));
    return done;
  }
}

async function publish(
  target: NpmTarget,
  packed: NpmPackage,
  missing: boolean,
  { dryRun }: ReleaseOptions,
  progress: Progress,
): Promise<Row> {
  const row = { name: `npm ${packed.name}`, reference: npmReference(target, packed), digest: packed.digest };
  if (!missing) return { ...row, content: "unchanged" };
  if (dryRun) return { ...row, content: "to publish" };
  await progress.step(`publish ${packed.name}`, () => publishNpm(target, packed));
  return { ...row, content: "published" };
}
