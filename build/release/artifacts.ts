import { readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { parse } from "yaml";
import { repository } from "../../constructs/version";
import { billOfMaterialsOf } from "../cli";
import { BILL_OF_MATERIALS } from "../image/contents";
import {
  type Descriptor,
  Layout,
  type LayoutContent,
  type Manifest,
  MEDIA,
  REF_NAME,
  readLayout,
} from "../image/layout";
import { OCI_NAMES } from "../image/oci";
import { tarArchive, untar } from "../image/tar";

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Media types of Helm's charts. */
const HELM = {
  config: "application/vnd.cncf.helm.config.v1+json",
  chart: "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
} as const;
const JAVASCRIPT = "text/javascript";
/** The annotation by which `oras pull` names the file that it writes. */
const TITLE = "org.opencontainers.image.title";

/** The image of one platform. */
interface PlatformImage {
  /** As `linux/amd64`. */
  readonly platform: string;
  readonly digest: string;
  /** CycloneDX, as the image holds it. */
  readonly billOfMaterials: Buffer;
}

/** One artifact of a release: a name and a version in the registry. */
export interface Artifact {
  /** For people: `chart linkerd2-cni`. */
  readonly name: string;
  /** Below the registry: `charts/linkerd2-cni`. */
  readonly repository: string;
  readonly tag: string;
  /** Of the manifest, or of the image's index. */
  readonly digest: string;
  /** Path of the OCI layout's archive that holds it. */
  readonly archive: string;
  /** CycloneDX of an artifact without platforms. @default none */
  readonly billOfMaterials?: Buffer;
  /** The platforms of an image. @default none */
  readonly platforms?: readonly PlatformImage[];
}

/** The files to release. */
export interface Sources {
  /** Archive of the image. */
  readonly image: string;
  /** Folder with one folder per chart. */
  readonly charts: string;
  /** The command line's executable. */
  readonly cli: string;
}

const unreadable =
  (path: string, remedy: string) =>
  (error: unknown): never => {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? error}): run ${remedy}`);
  };

/** The image from the built archive. @throws if an architecture is missing, or the version differs */
export async function imageArtifact(archive: string, version: string): Promise<Artifact> {
  const { manifests, blobs } = await readLayout(archive).catch(unreadable(archive, "npm run image"));
  const [image] = manifests;
  const tag = image?.annotations?.[REF_NAME] ?? "none";
  if (tag !== version) {
    throw new Error(`${archive} is of version ${tag}, package.json of ${version}: run npm run image`);
  }
  const digest = image?.digest ?? "";
  const found = jsonOf(blobs, digest).manifests ?? [];
  const platforms = await Promise.all(found.map((descriptor) => platformImage(blobs, descriptor)));
  for (const wanted of Object.values(OCI_NAMES).map((name) => `linux/${name}`)) {
    if (platforms.some(({ platform }) => platform === wanted)) continue;
    throw new Error(`${archive} is not for ${wanted}: run npm run image, which says what it needs`);
  }
  return { name: "image", repository: "linkerd-cni", tag: version, digest, archive, platforms };
}

async function platformImage(blobs: LayoutContent["blobs"], { digest, platform }: Descriptor): Promise<PlatformImage> {
  const [layer] = jsonOf(blobs, digest).layers ?? [];
  const files = await untar(await decompress(blobs.get(layer?.digest ?? "") ?? Buffer.alloc(0)));
  const billOfMaterials = files.get(BILL_OF_MATERIALS.slice(1));
  const name = `${platform?.os}/${platform?.architecture}`;
  if (billOfMaterials === undefined) throw new Error(`the image for ${name} has no ${BILL_OF_MATERIALS}`);
  return { platform: name, digest, billOfMaterials };
}

const jsonOf = (blobs: LayoutContent["blobs"], digest: string): Manifest =>
  JSON.parse((blobs.get(digest) ?? "{}").toString()) as Manifest;

/**
 * A chart as the artifact that `helm push` makes, but the same bytes each time: what Helm packs holds the times of the
 * files, and what it pushes that of the package.
 * @param folder with Chart.yaml
 * @param work directory for the artifact's archive
 * @throws if the chart is of another version
 */
export async function chartArtifact(folder: string, version: string, work: string): Promise<Artifact> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    unreadable(folder, "npm run build -- charts"),
  );
  const name = basename(folder);
  const files = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => {
        const path = join(entry.parentPath, entry.name);
        return { name: `${name}${path.slice(folder.length)}`, content: await readFile(path) };
      }),
  );
  const chartYaml = join(folder, "Chart.yaml");
  const text = await readFile(chartYaml, "utf8").catch(unreadable(chartYaml, "npm run build -- charts"));
  const about = parse(text) as Record<string, string>;
  for (const key of ["version", "appVersion"]) {
    if (about[key] === version) continue;
    const differs = `${chartYaml}: ${key} is ${about[key]}, package.json's is ${version}`;
    throw new Error(`${differs}: run npm run build -- charts`);
  }
  const layout = new Layout();
  const config = layout.addJson(HELM.config, about);
  const chart = layout.add(HELM.chart, await compress(await tarArchive(files), { level: 9 }));
  return writeArtifact(layout, work, {
    name: `chart ${name}`,
    repository: `charts/${name}`,
    tag: version,
    manifest: { config, layers: [chart], annotations: annotations(name, version, about["description"] ?? "") },
  });
}

/** The command line as an artifact of one file. @param work directory for the artifact's archive */
export async function cliArtifact(path: string, version: string, work: string): Promise<Artifact> {
  const name = basename(path);
  const read = (file: string) => readFile(file).catch(unreadable(file, "npm run build -- cli"));
  const content = await read(path);
  const billOfMaterials = await read(billOfMaterialsOf(path));
  const layout = new Layout();
  const config = layout.add(MEDIA.empty, Buffer.from("{}"));
  const file = { ...layout.add(JAVASCRIPT, content), annotations: { [TITLE]: name } };
  return writeArtifact(layout, work, {
    name: `CLI ${name}`,
    repository: name,
    tag: version,
    billOfMaterials,
    manifest: {
      artifactType: JAVASCRIPT,
      config,
      layers: [file],
      annotations: annotations(name, version, "Installs, checks and explains the Linkerd CNI plugin"),
    },
  });
}

const annotations = (title: string, version: string, description: string): Readonly<Record<string, string>> => ({
  [TITLE]: title,
  "org.opencontainers.image.version": version,
  "org.opencontainers.image.description": description,
  "org.opencontainers.image.source": repository,
  "org.opencontainers.image.url": repository,
});

interface Parts extends Pick<Artifact, "name" | "repository" | "tag" | "billOfMaterials"> {
  readonly manifest: Manifest & { readonly artifactType?: string };
}

async function writeArtifact(layout: Layout, work: string, { manifest, ...named }: Parts): Promise<Artifact> {
  const whole = { schemaVersion: 2, mediaType: MEDIA.manifest, ...manifest };
  const descriptor = layout.addJson(MEDIA.manifest, whole);
  const archive = join(work, `${named.repository.replace("/", "-")}.oci.tar`);
  await writeFile(archive, await layout.archive([{ ...descriptor, annotations: { [REF_NAME]: named.tag } }]));
  return { ...named, digest: descriptor.digest, archive };
}

/** Everything for the registry. @param work directory for artifacts */
export async function artifacts(sources: Sources, version: string, work: string): Promise<readonly Artifact[]> {
  const charts = await readdir(sources.charts).catch(unreadable(sources.charts, "npm run build -- charts"));
  const making = [
    imageArtifact(sources.image, version),
    ...charts.sort().map((name) => chartArtifact(join(sources.charts, name), version, work)),
    cliArtifact(sources.cli, version, work),
  ];
  const made = await Promise.allSettled(making);
  const problems = made.flatMap((result) => (result.status === "rejected" ? [(result.reason as Error).message] : []));
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return Promise.all(making);
}
