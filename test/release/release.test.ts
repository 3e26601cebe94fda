/** A release as a maintainer makes it and a user verifies it, against a registry of its own on the loopback. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { buildCli } from "../../build/cli";
import { Layout, MEDIA, REF_NAME, readLayout } from "../../build/image/layout";
import { tarArchive } from "../../build/image/tar";
import { outputs, root } from "../../build/paths";
import { chartArtifact } from "../../build/release/artifacts";
import type { Row } from "../../build/release/release";
import { synthesized, writeFolder } from "../../charts/synth";
import { version } from "../../constructs";
import { NpmRegistry } from "../support/npm-registry";
import { OciRegistry, releaseCommand, SigningKey } from "../support/oci-registry";
import { freePort } from "../support/ports";
import { missing, suite } from "../support/requirements";
import { differences, snapshot } from "../support/snapshot";

const run = promisify(execFile);
const PROGRAMS = ["docker-registry", "oras", "cosign", "helm", "verdaccio", "git", "npm", "jq"];
const built = [outputs.image, outputs.cli].every(existsSync) ? undefined : "the image and the CLI: npm run build";

suite("a release", missing({ programs: PROGRAMS }) ?? built, () => {
  let work: string;
  let registry: OciRegistry;
  let key: SigningKey;
  let base: string;
  let small: string;
  let rows: readonly Row[];

  /** What is run sees no credentials but those that a test gives. */
  const environment = (changes: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
    ...process.env,
    COSIGN_PASSWORD: SigningKey.PASSWORD,
    DOCKER_CONFIG: join(work, "docker"),
    NO_COLOR: "1",
    ...changes,
  });
  const releases = async (args: readonly string[], env = environment()) => {
    const [program = "", ...rest] = releaseCommand("--plain-http", "--allow-dirty", ...args);
    return run(program, rest, { cwd: root, env });
  };
  /** Releases into a path of the registry. */
  const releaseTo = async (path: string, ...args: readonly string[]) => {
    const { stdout } = await releases(["--registry", `${registry.address}/${path}`, "--output=json", ...args]);
    return (JSON.parse(stdout) as { artifacts: readonly Row[] }).artifacts;
  };
  const failure = async (args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> =>
    releases(args, env).then(
      () => "it did not fail",
      ({ stderr }) => stderr as string,
    );
  const tool = async (program: string, ...args: readonly string[]) => {
    const { stdout } = await run(program, [...args], { cwd: work, env: environment(), maxBuffer: 1 << 28 });
    return stdout;
  };
  const row = (name: string): Row => {
    const found = rows.find((each) => each.name === name);
    if (found === undefined) throw new Error(`the report has no ${name}`);
    return found;
  };
  const byDigest = ({ reference, digest }: Row) => `${reference.slice(0, reference.lastIndexOf(":"))}@${digest}`;
  const verify = (reference: string) => tool("cosign", "verify", "--allow-http-registry", ...key.verifies, reference);
  /** The predicate of an attestation. */
  const attested = async (reference: string, type: string) => {
    const flags = ["--allow-http-registry", ...key.verifies, "--type", type, reference];
    const { payload } = JSON.parse(await tool("cosign", "verify-attestation", ...flags)) as { payload: string };
    return (JSON.parse(Buffer.from(payload, "base64").toString()) as { predicate: unknown }).predicate;
  };

  /** A folder like `dist` with a small image and CLI of the same version, and one chart that differs. */
  async function makeSmall(): Promise<string> {
    const folder = join(work, "small");
    for (const name of ["image", "bin"]) await mkdir(join(folder, name), { recursive: true });
    await cp(outputs.charts, join(folder, "charts"), { recursive: true });
    await writeFile(join(folder, "charts", "linkerd-multus", "README.md"), "Another one.\n");
    await writeFile(join(folder, "bin", "l5d-cni"), "#!/usr/bin/env node\n");
    await writeFile(join(folder, "bin", "l5d-cni.cdx.json"), "{}");
    const layout = new Layout();
    const files = ["licenses/sbom.cdx.json", "opt/cni/bin/linkerd-cni"].map((name) => ({
      name,
      content: Buffer.from("{}"),
    }));
    const layers = [layout.add(MEDIA.layer, gzipSync(await tarArchive(files)))];
    const manifests = ["amd64", "arm64"].map((architecture) => {
      const platform = { architecture, os: "linux" };
      const config = layout.addJson(MEDIA.config, platform);
      const manifest = { schemaVersion: 2, mediaType: MEDIA.manifest, config, layers };
      return { ...layout.addJson(MEDIA.manifest, manifest), platform };
    });
    const index = layout.addJson(MEDIA.index, { schemaVersion: 2, mediaType: MEDIA.index, manifests });
    const archive = await layout.archive([{ ...index, annotations: { [REF_NAME]: version } }]);
    await writeFile(join(folder, "image", "linkerd-cni.oci.tar"), archive);
    return folder;
  }

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), "linkerd-cni-rehearsal-"));
    await mkdir(join(work, "docker"));
    registry = await OciRegistry.start(await freePort(), join(work, "registry"));
    key = await SigningKey.make(join(work, "key"));
    base = `${registry.address}/mesh`;
    small = await makeSmall();
  });
  afterAll(async () => {
    await registry.stop();
    await rm(work, { recursive: true, force: true });
  });

  test("tried only, says every digest and changes nothing", async () => {
    const npm = join(work, "npm");
    rows = await releaseTo("mesh", "--dry-run", "--npm", npm);
    expect(rows.map(({ name, content, signature }) => [name, content, signature])).toEqual([
      ["image", "missing", "missing"],
      ["image linux/amd64", "missing", "missing"],
      ["image linux/arm64", "missing", "missing"],
      ["chart linkerd-multus", "missing", "missing"],
      ["chart linkerd2-cni", "missing", "missing"],
      ["CLI l5d-cni", "missing", "missing"],
      ["npm cdk8s-helm-chart", "missing", undefined],
      ["npm linkerd-cni-cdk8s", "missing", undefined],
    ]);
    expect([await readdir(registry.storage), existsSync(npm)]).toEqual([[], false]);
  });

  test("pushes and signs all of it, under the digests that the trial said", async () => {
    const { stdout, stderr } = await releases(["--registry", base, "--npm", join(work, "npm"), ...key.signs]);
    expect(stderr).toMatch(/✓ push image .*\n.*✓ push chart/);
    const [head, ...lines] = stdout.trimEnd().split("\n");
    expect(head?.split(/\s+/)).toEqual([
      ...["ARTIFACT", "REFERENCE", "DIGEST", "CONTENT", "SIGNATURE", "SBOM", "PROVENANCE"],
    ]);
    const column = head?.indexOf("DIGEST") ?? 0;
    expect(lines.map((line) => line.slice(column, column + 71))).toEqual(rows.map(({ digest }) => digest));
    const { manifests } = await readLayout(outputs.image);
    expect(row("image").digest).toBe(manifests[0]?.digest);
    const resolved = await tool("oras", "resolve", "--plain-http", row("image").reference);
    expect(resolved.trim()).toBe(row("image").digest);
    // As wide as a terminal that shows it: what the manual quotes.
    process.stdout.write(stdout);
  });

  test("is verified by cosign: image, each platform's, charts and CLI; SBOM and provenance", async () => {
    for (const each of rows.filter(({ reference }) => reference.startsWith(base))) await verify(byDigest(each));
    await verify(row("image").reference);
    await verify(row("chart linkerd2-cni").reference);
    for (const architecture of ["amd64", "arm64"]) {
      const reference = byDigest(row(`image linux/${architecture}`));
      const sbom = await readFile(join(outputs.image, "..", `sbom-${architecture}.cdx.json`), "utf8");
      expect(await attested(reference, "cyclonedx")).toEqual(JSON.parse(sbom));
    }
    const commit = (await run("git", ["rev-parse", "HEAD"], { cwd: root })).stdout.trim();
    for (const name of ["image", "image linux/arm64", "chart linkerd2-cni", "chart linkerd-multus", "CLI l5d-cni"]) {
      expect(await attested(byDigest(row(name)), "slsaprovenance1")).toMatchObject({
        buildDefinition: { resolvedDependencies: [{ digest: { gitCommit: commit } }] },
      });
    }
  });

  test("is verified by the commands of docs/verify.md", async () => {
    const manual = await readFile(join(root, "docs", "verify.md"), "utf8");
    const blocks = [...manual.matchAll(/^```sh\n(.*?)^```/gms)].map(([, commands = ""]) => commands);
    const script = blocks.filter((commands) => !commands.includes("kubectl")).join("");
    // As the workflow signs the files of a release's page.
    const workflow = await readFile(join(root, ".github", "workflows", "release.yml"), "utf8");
    const [, sign = ""] = /(cosign sign-blob .*) --bundle/.exec(workflow) ?? [];
    await tool("cp", outputs.cli, "signed");
    await tool("bash", "-euc", `${sign} --bundle l5d-cni.sigstore.json ${key.signs.join(" ")} signed`);
    const changed = script
      .replace(/^REGISTRY=.*$/m, `REGISTRY=${base}`)
      .replace(/^VERSION=.*$/m, `VERSION=${version}`)
      .replace(/^SIGNER=.*$/m, `SIGNER="${key.verifies.join(" ")}"`);
    const plain =
      'oras() { command oras "$@" --plain-http; }; ' +
      'cosign() { [ "$1" = verify-blob ] || set -- "$@" --allow-http-registry; command cosign "$@"; }';
    const ends = "./l5d-cni --version; grep -m 1 bomFormat sbom.json; echo $CHART $IMAGE";
    const out = await tool("bash", "-euo", "pipefail", "-c", [plain, changed, ends].join("\n"));
    expect(script.match(/^cosign verify/gm)).toHaveLength(6);
    for (const wanted of [version, '"bomFormat"', row("image").digest, row("chart linkerd2-cni").digest, "gitCommit"]) {
      expect(out).toContain(wanted);
    }
  });

  test("another key verifies nothing of it", async () => {
    const other = await SigningKey.make(join(work, "other-key"));
    const flags = ["--allow-http-registry", ...other.verifies];
    await expect(tool("cosign", "verify", ...flags, byDigest(row("image")))).rejects.toThrow(/invalid signature|verif/);
  });

  test("changes nothing when it is made again: no content, no signature, no attestation", async () => {
    const [stored, packed] = [await snapshot(registry.storage), await snapshot(join(work, "npm"))];
    const again = await releaseTo("mesh", "--npm", join(work, "npm"), ...key.signs);
    const outcomes = again.flatMap(({ content, signature, sbom, provenance }) => [
      content,
      signature,
      sbom,
      provenance,
    ]);
    expect([...new Set(outcomes)]).toEqual(["unchanged", undefined]);
    expect(again.map(({ digest }) => digest)).toEqual(rows.map(({ digest }) => digest));
    expect(differences(stored, await snapshot(registry.storage))).toEqual([]);
    expect(differences(packed, await snapshot(join(work, "npm")))).toEqual([]);
  });

  test("has the digests that a second, independent build has", async () => {
    // The image is built twice by its own suite, which compares the archives whose digest is released here.
    const again = join(work, "again");
    await mkdir(again);
    for (const [folder, files] of synthesized()) await writeFolder(join(again, folder), files);
    for (const name of await readdir(join(again, "charts"))) {
      const { digest } = await chartArtifact(join(again, "charts", name), version, again);
      expect(digest).toBe(row(`chart ${name}`).digest);
    }
    await buildCli(join(again, "l5d-cni"));
    expect(await readFile(join(again, "l5d-cni"))).toEqual(await readFile(outputs.cli));
  });

  test("is accepted by Helm, oras and npm", async () => {
    const from = ["--plain-http", "--version", version];
    for (const name of ["linkerd2-cni", "linkerd-multus"]) {
      await tool("helm", "pull", `oci://${base}/charts/${name}`, ...from, "--untar", "--untardir", "pulled");
      const pulled = await snapshot(join(work, "pulled", name));
      expect(differences(pulled, await snapshot(join(outputs.charts, name)))).toEqual([]);
    }
    const render = ["template", "linkerd-cni", "--kube-version=1.34.0"];
    const rendered = await tool("helm", ...render, `oci://${base}/charts/linkerd2-cni`, ...from);
    expect(rendered).toBe(await tool("helm", ...render, join(outputs.charts, "linkerd2-cni")));
    await tool("oras", "pull", "--plain-http", "--output", join(work, "pulled"), row("CLI l5d-cni").reference);
    const pulled = join(work, "pulled", "l5d-cni");
    expect(await readFile(pulled)).toEqual(await readFile(outputs.cli));
    expect(await tool(process.execPath, pulled, "--version")).toContain(version);
    const tarball = row("npm linkerd-cni-cdk8s").reference;
    expect(JSON.parse(await tool("tar", "-xOf", tarball, "package/package.json"))).toMatchObject({ version });
  });

  test("that is altered, and pushed again under the version, is neither verified nor overwritten", async () => {
    const altered = join(work, "altered", "linkerd2-cni");
    await cp(join(outputs.charts, "linkerd2-cni"), altered, { recursive: true });
    await writeFile(join(altered, "values.yaml"), "logLevel: debug\n");
    const { archive, tag } = await chartArtifact(altered, version, work);
    const { reference, digest } = row("chart linkerd2-cni");
    await tool("oras", "cp", "--to-plain-http", "--from-oci-layout", `${archive}:${tag}`, reference);
    await expect(verify(reference)).rejects.toThrow(/no signatures/);
    const stored = await snapshot(registry.storage);
    const said = await failure(["--registry", base, ...key.signs]);
    expect(said).toContain("Nothing was pushed");
    expect(said).toMatch(new RegExp(`\\n  ${reference} is sha256:\\w+, this is ${digest}\\n$`));
    expect(differences(stored, await snapshot(registry.storage))).toEqual([]);
    await tool("oras", "tag", "--plain-http", byDigest({ ...row("chart linkerd2-cni"), digest }), version);
    await verify(reference);
  });

  test("of other content under the same version is refused before anything is pushed", async () => {
    const npm = join(work, "other-npm");
    await mkdir(npm);
    const content = gzipSync(await tarArchive([{ name: "package/index.js", content: Buffer.from("") }]));
    await writeFile(join(npm, `linkerd-cni-cdk8s-${version}.tgz`), content);
    await releaseTo("other", "--dist", small, ...key.signs);
    const stored = await snapshot(registry.storage);
    const said = await failure(["--registry", `${registry.address}/other`, "--npm", npm, ...key.signs]);
    expect(said).toContain("Nothing was pushed");
    expect(said).toContain(`${registry.address}/other/linkerd-cni:${version} is sha256:`);
    for (const name of ["charts/linkerd-multus", "l5d-cni"]) {
      expect(said).toMatch(new RegExp(`/other/${name}:${version} is sha256:\\w+, this is sha256:`));
    }
    expect(said).toMatch(/linkerd-cni-cdk8s-\S+\.tgz is sha512-\S+, this is sha512-/);
    // The same content is not a conflict.
    expect(said).not.toContain("linkerd2-cni:");
    expect(differences(stored, await snapshot(registry.storage))).toEqual([]);
  });

  test("that was interrupted is completed: what is pushed stays, what is not signed is signed", async () => {
    const archive = `${join(small, "image", "linkerd-cni.oci.tar")}:${version}`;
    const half = `${registry.address}/half/linkerd-cni:${version}`;
    await tool("oras", "cp", "--to-plain-http", "--from-oci-layout", archive, half);
    const completed = await releaseTo("half", "--dist", small, ...key.signs);
    expect(completed.find(({ name }) => name === "image")).toMatchObject({
      content: "unchanged",
      signature: "added",
      provenance: "added",
    });
    expect(completed.find(({ name }) => name === "CLI l5d-cni")).toMatchObject({
      content: "added",
      signature: "added",
    });
  });

  test("publishes the npm package to a registry once, and refuses another of that version", async () => {
    const npm = await NpmRegistry.start(await freePort(), join(work, "verdaccio"));
    try {
      const args = ["--registry", `${registry.address}/npm`, "--dist", small, "--npm-registry", npm.url];
      const env = environment({ NPM_CONFIG_USERCONFIG: npm.credentials });
      const nobody = await failure([...args, ...key.signs], environment({ NPM_CONFIG_USERCONFIG: join(work, "none") }));
      expect(nobody).toMatch(/npm: .*\n.*log in with an account that may publish: npm login --registry http/);
      const outcome = async (...flags: readonly string[]) => {
        const { stdout } = await releases([...args, ...flags, "--output=json"], env);
        const { artifacts } = JSON.parse(stdout) as { artifacts: readonly Row[] };
        return artifacts.find(({ name }) => name === "npm linkerd-cni-cdk8s");
      };
      expect(await outcome(...key.signs)).toMatchObject({
        content: "added",
        digest: row("npm linkerd-cni-cdk8s").digest,
      });
      expect(await outcome("--dry-run")).toMatchObject({ content: "unchanged" });
      // Another package under that version, as npm publishes it.
      const other = join(work, "other-package");
      await mkdir(other);
      await writeFile(join(other, "package.json"), JSON.stringify({ name: "linkerd-cni-cdk8s", version }));
      const flags = [`--registry=${npm.url}`, `--userconfig=${npm.credentials}`, "--force"];
      await tool("npm", "unpublish", `linkerd-cni-cdk8s@${version}`, ...flags);
      await tool("npm", "publish", other, ...flags);
      const said = await failure([...args, "--dry-run"], env);
      expect(said).toContain("Nothing was pushed");
      expect(said).toMatch(/linkerd-cni-cdk8s@\S+ is sha512-\S+, this is sha512-/);
    } finally {
      await npm.stop();
    }
  });

  describe("says what to do", () => {
    test("without cosign, or nothing to sign with", async () => {
      const programs = join(work, "programs");
      await mkdir(programs);
      for (const name of ["oras", "git"]) await symlink((await tool("which", name)).trim(), join(programs, name));
      const said = await failure(["--registry", base, ...key.signs], environment({ PATH: programs }));
      expect(said).toMatch(/cosign is not installed/);
      expect(await failure(["--registry", base])).toMatch(/nothing to sign with: give --key FILE/);
    });

    test("without the key, or with a wrong password", async () => {
      expect(await failure(["--registry", base, "--key", "none.key"])).toMatch(
        /--key none\.key: there is no such file/,
      );
      const wrong = environment({ COSIGN_PASSWORD: "wrong" });
      expect(await failure(["--registry", base, ...key.signs], wrong)).toMatch(/COSIGN_PASSWORD in the environment/);
    });

    test("with a registry that is named wrongly, or does not answer", async () => {
      expect(await failure(["--registry", `http://${base}`])).toMatch(/give host and path without a scheme/);
      const nobody = `127.0.0.1:${await freePort()}`;
      expect(await failure(["--registry", nobody, "--dry-run"])).toMatch(/connection refused/);
    });

    test("with a registry that asks for credentials; those of ~/.docker/config.json are used", async () => {
      const directory = join(work, "private");
      await mkdir(directory);
      const users = join(directory, "htpasswd");
      // The password is "secret".
      await writeFile(users, "releaser:$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n");
      const closed = await OciRegistry.start(await freePort(), directory, users);
      try {
        const args = ["--registry", `${closed.address}/mesh`, "--dist", small, ...key.signs];
        expect(await failure(args)).toMatch(/unauthorized|basic credential/);
        const auth = Buffer.from("releaser:secret").toString("base64");
        const config = JSON.stringify({ auths: { [closed.address]: { auth } } });
        await writeFile(join(directory, "config.json"), config);
        const { stdout } = await releases(args, environment({ DOCKER_CONFIG: directory }));
        expect(stdout).toMatch(/chart linkerd2-cni .* added +added/);
      } finally {
        await closed.stop();
      }
    });

    test("with a tag of another version", async () => {
      const env = environment({ GITHUB_REF_TYPE: "tag", GITHUB_REF_NAME: "v9.9.9" });
      expect(await failure(["--registry", base, "--dry-run"], env)).toContain(
        `the tag is v9.9.9, but package.json has version ${version}: tag v${version}`,
      );
    });
  });
});
