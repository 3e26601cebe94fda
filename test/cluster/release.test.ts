/** A release as a cluster takes it: chart and image come from the registry that they were pushed to. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { IMAGE_NAME } from "../../build/image/image";
import { type Manifest, readLayout } from "../../build/image/layout";
import { outputs, root } from "../../build/paths";
import type { Row } from "../../build/release/release";
import { version } from "../../constructs";
import { releaseCommand, SigningKey } from "../support/oci-registry";
import { paths } from "./paths";
import { pod } from "./pods";
import { REGISTRY, REGISTRY_PROGRAMS, startRegistry } from "./registry";
import { clusterSuite, type TestCluster } from "./suite";

const BASE = `${REGISTRY}/mesh`;
const IMAGE = `${BASE}/linkerd-cni`;

function released(cluster: TestCluster): void {
  let work: string;
  let key: SigningKey;
  let rows: readonly Row[];
  /** Of the node's platform. */
  let manifest: Manifest;

  /** Runs a program on the node with the key's password, and no credentials. */
  const tool = (...command: readonly string[]) => {
    const env = [`HOME=${homedir()}`, `DOCKER_CONFIG=${work}`, `COSIGN_PASSWORD=${SigningKey.PASSWORD}`];
    return cluster.machine.run(["env", ...env, ...command], { directory: root });
  };
  const digestOf = (name: string) => rows.find((row) => row.name === name)?.digest ?? "";
  const verify = (reference: string) => tool("cosign", "verify", "--allow-http-registry", ...key.verifies, reference);

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), "linkerd-cni-release-"));
    key = await SigningKey.make(join(work, "key"));
    await startRegistry(cluster.machine);
    const flags = ["--registry", BASE, "--plain-http", "--allow-dirty", "--output=json"];
    rows = JSON.parse(await tool(...releaseCommand(...flags, ...key.signs))).artifacts;
    const { blobs } = await readLayout(outputs.image);
    const architecture = process.arch === "arm64" ? "arm64" : "amd64";
    manifest = JSON.parse(String(blobs.get(digestOf(`image linux/${architecture}`)))) as Manifest;
    // The node has the image from the archive, under names and its configuration's digest: it is to pull all of it.
    const ctr = ["ctr", "--namespace=k8s.io", "images"];
    const names = (await cluster.machine.run([...ctr, "ls", "-q"])).trim().split("\n");
    const ours = names.filter((name) => name.startsWith(IMAGE_NAME) || name === manifest.config?.digest);
    expect(ours.length).toBeGreaterThan(1);
    await cluster.machine.run([...ctr, "rm", "--sync", ...ours]);
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  test("helm installs the chart from the registry, and the node pulls the image from there by its digest", async () => {
    const image = ["--set", `image.name=${IMAGE}`, "--set", `image.digest=${digestOf("image")}`];
    const chart = [`oci://${BASE}/charts/linkerd2-cni`, "--plain-http", "--version", version];
    await cluster.helm("install", "linkerd-cni", "-n", "linkerd-cni", "--create-namespace", ...chart, ...image);
    await cluster.rolledOut();
    type Pods = { items: { status: { containerStatuses: { imageID: string }[] } }[] };
    const { items } = await cluster.kubectl.json<Pods>("get", "pods", "-n", "linkerd-cni");
    const images = items.flatMap(({ status }) => status.containerStatuses.map(({ imageID }) => imageID));
    expect(images).toEqual([`${IMAGE}@${digestOf("image")}`]);
    const layer = manifest.layers?.[0]?.digest;
    const log = await readFile(join(paths.logs, "docker-registry"), "utf8");
    const pulled = log.split("\n").filter((line) => line.includes(`GET /v2/mesh/linkerd-cni/blobs/${layer}`));
    expect(pulled).toEqual([expect.stringMatching(/HTTP\/1\.1" 200 .*containerd/)]);
  });

  test("cosign verifies what runs, and the chart", async () => {
    await verify(`${IMAGE}@${digestOf("image")}`);
    await verify(`${BASE}/charts/linkerd2-cni:${version}`);
  });

  test("the command line from the registry finds nothing to complain about", async () => {
    await tool("oras", "pull", "--plain-http", "--output", work, `${BASE}/l5d-cni:${version}`);
    const said = await cluster.machine.run([process.execPath, join(work, "l5d-cni"), "check", "--output=json"]);
    type Report = { categories: { checks: { description: string; result: string }[] }[] };
    const checks = (JSON.parse(said) as Report).categories.flatMap((category) => category.checks);
    expect(checks.length).toBeGreaterThan(10);
    expect(checks.filter(({ result }) => result !== "success")).toEqual([]);
  });

  test("a meshed pod is redirected by it", async () => {
    const [server] = (await cluster.kubectl.start(pod("server"), pod("meshed", { proxy: "sidecar" }))) as [string];
    const original = `${server}:8080`;
    expect(await cluster.kubectl.dial("meshed", original)).toEqual({ port: 4140, original });
  });
}

clusterSuite("a release in a registry", released, "1", [...REGISTRY_PROGRAMS, "cosign"]);
