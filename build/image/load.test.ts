import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadImage } from "./load";

/** A script on PATH under a program's name: it records the archives that it should load. */
const PROGRAMS = {
  taking: `case "$*" in *image.tar) echo "$0 $*" >> "$LOADED"; esac; echo 'unpacking'; echo 'it took it'`,
  refusing: `case "$*" in *image.tar) echo 'unpacking' >&2; echo 'no space left' >&2; exit 1; esac; echo 'here'`,
  daemonless: "echo 'version 1'; echo 'cannot connect to the daemon' >&2; exit 1",
  clusterless: "echo 'no nodes found' >&2",
} as const;

let directory: string;
let archive: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "load-image-"));
  archive = join(directory, "image.tar");
  await writeFile(archive, "an image");
});
afterEach(() => rm(directory, { recursive: true }));

/** Loads on a machine that has the given programs. */
async function loadWith(programs: Readonly<Record<string, keyof typeof PROGRAMS>>): Promise<string> {
  for (const [name, kind] of Object.entries(programs)) {
    await writeFile(join(directory, name), `#!/bin/sh\n${PROGRAMS[kind]}\n`, { mode: 0o755 });
  }
  return loadImage(archive, { PATH: directory, LOADED: join(directory, "loaded") });
}

const loaded = async () =>
  (await readFile(join(directory, "loaded"), "utf8")).replaceAll(`${directory}/`, "").trim().split("\n");

test("every program that is there and answers takes the archive, by its own arguments", async () => {
  const lines = await loadWith({ ctr: "taking", docker: "taking", podman: "taking", kind: "taking", k3s: "taking" });
  expect(lines.trim().split("\n")).toEqual([
    "ctr     loaded  it took it",
    "docker  loaded  it took it",
    "podman  loaded  it took it",
    "kind    loaded  it took it",
    "k3s     loaded  it took it",
  ]);
  expect(await loaded()).toEqual([
    "ctr --namespace k8s.io images import image.tar",
    "docker load --input image.tar",
    "podman load --input image.tar",
    "kind load image-archive image.tar",
    "k3s ctr images import image.tar",
  ]);
});

test("a program that is absent, or has no daemon or cluster behind it, is not asked to, and fails nothing", async () => {
  const lines = await loadWith({ ctr: "taking", docker: "daemonless", kind: "clusterless" });
  expect(lines.trim().split("\n")).toEqual([
    "ctr     loaded  it took it",
    "docker  silent  cannot connect to the daemon",
    "podman  -       not installed",
    "kind    silent  no nodes found",
    "k3s     -       not installed",
  ]);
});

test("one that answers and refuses is a failure, though another takes the archive", async () => {
  const attempt = loadWith({ ctr: "taking", docker: "refusing" });
  await expect(attempt).rejects.toThrow(/^docker did not take the image\nctr .*\ndocker {2}refused no space left\n/);
  expect(await loaded()).toHaveLength(1);
});

test.each([
  ["none is there", {}],
  ["none has a daemon", { ctr: "daemonless", docker: "daemonless" }],
] as const)("nothing loaded is a failure: %s", async (_, programs) => {
  await expect(loadWith(programs)).rejects.toThrow(/^no container runtime took the image\nctr /);
});

test("without an image it is said how to make one", async () => {
  await rm(archive);
  await expect(loadWith({ ctr: "taking" })).rejects.toThrow("there is no image yet: npm run image");
});
