import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../paths";
import type { Progress } from "../progress";
import { type Artifact, artifacts, type Sources } from "./artifacts";
import { type Attestation, Cosign, type Signing } from "./cosign";
import { execute } from "./execute";
import {
  type NpmPackage,
  type NpmTarget,
  npmReference,
  PACKAGES,
  packNpm,
  publishedIntegrity,
  publishNpm,
} from "./npm";
import { provenance, type Source } from "./provenance";
import { Registry } from "./registry";

/** Options of a release. */
interface ReleaseOptions {
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

/** `missing` is what a dry run would add. */
type Outcome = "unchanged" | "added" | "missing";

/** One line of the report. */
export interface Row extends Partial<Record<Attestation, Outcome>> {
  readonly name: string;
  readonly reference: string;
  readonly digest: string;
  readonly content: Outcome;
}

/**
 * Publishes a version. Existing artifacts do not change. Nothing is pushed if the version has different content.
 * @throws with all problems found before the first push
 */
export async function release(options: ReleaseOptions, progress: Progress): Promise<readonly Row[]> {
  const { dryRun, npm, plainHttp, version, work } = options;
  const source = await progress.step("sources", () => prepare(options));
  const cosign = await Cosign.from(options.signing, plainHttp, work);
  if (cosign === undefined && !dryRun) {
    throw new Error(
      "nothing to sign with: give --key FILE, or run where the CI vouches for an identity (see docs/contribute/release.md)",
    );
  }
  const made = await progress.step("artifacts", () => artifacts(options.sources, version, work));
  const packed: NpmPackage[] = [];
  for (const folder of PACKAGES) {
    if (npm !== undefined) packed.push(await progress.step("npm package", () => packNpm(npm, folder, work)));
  }
  const registry = new Registry(options.registry, plainHttp);
  const published = await progress.step("comparison with what is published", () => compare(registry, made, packed));

  const add = async (present: boolean, title: string, action: () => Promise<void>): Promise<Outcome> => {
    if (present) return "unchanged";
    if (dryRun) return "missing";
    await progress.step(title, action);
    return "added";
  };
  const contents = new Map<Artifact, Outcome>();
  for (const artifact of made) {
    const pushed = await add(published.has(artifact), `push ${artifact.name}`, () => registry.push(artifact));
    contents.set(artifact, pushed);
  }
  const provenancePath = join(work, "provenance.json");
  await writeFile(provenancePath, JSON.stringify(provenance(source, version, options.env)));
  const rows: Row[] = [];
  for (const [artifact, content] of contents) {
    for (const { name, digest, billOfMaterials } of subjects(artifact)) {
      const reference = `${registry.nameOf(artifact)}@${digest}`;
      const attest = async (type: Attestation, predicate?: string): Promise<Outcome> => {
        const present = content !== "missing" && (await cosign?.has(reference, type)) === true;
        return add(present, `${type} of ${name}`, async () => cosign?.add(reference, type, predicate));
      };
      const sbom = join(work, `${name.replace(/\W/g, "-")}.cdx.json`);
      if (billOfMaterials !== undefined) await writeFile(sbom, billOfMaterials);
      rows.push({
        ...{ name, reference: `${registry.nameOf(artifact)}:${artifact.tag}`, digest, content },
        signature: await attest("signature"),
        ...(billOfMaterials === undefined ? {} : { sbom: await attest("sbom", sbom) }),
        provenance: await attest("provenance", provenancePath),
      });
    }
  }
  for (const each of packed) {
    const content = await add(published.has(each), `publish ${each.name}`, () => publishNpm(each));
    rows.push({ name: `npm ${each.name}`, reference: npmReference(each), digest: each.digest, content });
  }
  return rows;
}

/** The commit of a release. @throws if the tag or files differ from it */
async function prepare({ allowDirty, version, env }: ReleaseOptions): Promise<Source> {
  if (env["GITHUB_REF_TYPE"] === "tag" && env["GITHUB_REF_NAME"] !== `v${version}`) {
    throw new Error(`the tag is ${env["GITHUB_REF_NAME"]}, but package.json has version ${version}: tag v${version}`);
  }
  const git = async (...args: readonly string[]) => (await execute("git", args, { cwd: root })).toString().trim();
  const [commit, changes] = [await git("rev-parse", "HEAD"), await git("status", "--porcelain")];
  if (changes !== "" && !allowDirty) {
    throw new Error(`files differ from the commit: commit them, or add --allow-dirty\n${changes}`);
  }
  return { commit, dirty: changes !== "" };
}

/** Looks each version up. @returns the published ones @throws if the content of one is different */
async function compare(
  registry: Registry,
  made: readonly Artifact[],
  packed: readonly NpmPackage[],
): Promise<ReadonlySet<Artifact | NpmPackage>> {
  const published = new Set<Artifact | NpmPackage>();
  const conflicts: string[] = [];
  const see = (each: Artifact | NpmPackage, reference: string, theirs: string | undefined, ours: string) => {
    if (theirs !== undefined) published.add(each);
    if (theirs !== undefined && theirs !== ours) conflicts.push(`  ${reference} is ${theirs}, this is ${ours}`);
  };
  for (const artifact of made) {
    see(artifact, `${registry.nameOf(artifact)}:${artifact.tag}`, await registry.find(artifact), artifact.digest);
  }
  for (const each of packed) {
    see(each, npmReference(each), await publishedIntegrity(each), each.integrity);
  }
  if (conflicts.length === 0) return published;
  const what = conflicts.join("\n");
  throw new Error(
    `a version is published once: raise the version, or build what was published. Nothing was pushed\n${what}`,
  );
}

/** The subjects to sign: an image as a whole, and each platform's by itself, since either may be named by its digest. */
function subjects(artifact: Artifact): readonly Pick<Artifact, "name" | "digest" | "billOfMaterials">[] {
  const { platforms = [], name } = artifact;
  return [artifact, ...platforms.map(({ platform, ...image }) => ({ name: `${name} ${platform}`, ...image }))];
}
