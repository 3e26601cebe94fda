/** The simulated runtimes read configuration as the real loaders do, whose answers are recorded. */

import { Clock, randomOf } from "../simulation/clock";
import { Disk, Files } from "../simulation/files";
import { BIN_DIR, NET_DIR, type ReaderName, Runtime } from "../simulation/runtime";
import { type Loaded, type Runtime as Loader, recorded, TYPES } from "../support/cni-loaders";

const LOADERS: Readonly<Record<ReaderName, Loader>> = {
  "containerd 1.6": "containerd 1.6",
  "containerd 2.1": "containerd",
  "CRI-O 1.34": "crio",
};

/** What the simulated owners and the installer write. */
const KINDS: Readonly<Record<string, string>> = { cniVersion: "string", name: "string", type: "string", mtu: "number" };

/** Whether a file holds that, or is half written. */
function isPlain(text: unknown): boolean {
  if (typeof text !== "string" || /"type":\d/.test(text)) return false;
  try {
    JSON.parse(text, (key, value) => {
      const isKnown = key === "plugins" ? Array.isArray(value) : /^\d*$/.test(key) || typeof value === KINDS[key];
      const isObject = !/^\d*$/.test(key) || (typeof value === "object" && value !== null && !Array.isArray(value));
      if (!isKnown || !isObject) throw new TypeError(key);
      return value;
    });
    return true;
  } catch (error) {
    return error instanceof SyntaxError;
  }
}

const all = recorded().filter(({ files }) => Object.values(files).every(isPlain));

function loadedBy(name: ReaderName, directory: Readonly<Record<string, unknown>>): Loaded {
  const clock = new Clock();
  const files = new Files(new Disk(clock));
  for (const each of [NET_DIR, BIN_DIR]) files.makeDirectories(each);
  for (const [path, text] of Object.entries(directory)) {
    files.makeDirectories(`${NET_DIR}/${path}`.replace(/\/[^/]*$/, ""));
    if (!path.endsWith("/")) files.write(`${NET_DIR}/${path}`, text as string);
  }
  const runs = (plugin: string) => (TYPES as readonly string[]).includes(plugin);
  const runtime = new Runtime({ files, clock, random: randomOf(1), runs });
  runtime.name = name;
  return runtime.inForce()?.join(", ") ?? null;
}

test("many of the recorded directories hold what the simulation writes", () => {
  expect(all.length).toBeGreaterThan(70);
});

test.each(Object.keys(LOADERS) as ReaderName[])("%s", (name) => {
  const said = (is: string, loaded: Loaded) => `${is}: ${loaded}`;
  const real = all.map((each) => said(each.is, each[LOADERS[name]]?.replace(/^.*?: /, "") ?? null));
  expect(all.map((each) => said(each.is, loadedBy(name, each.files)))).toEqual(real);
});
