/**
 * Primary CNIs that write their configuration as their own installers do, before and after ours. How each writes was read
 * in its sources in November 2026; the configurations are those of test/fixtures/conflists.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  type FSWatcher,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../build/paths";
import { CHAINED_NOTE, type Chaining } from "../../cni/contract";
import { isPlugin } from "../../cni/stanza";
import { ApiStub, json } from "../support/api-server";
import { buildPrograms } from "../support/program";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

/** Writes a file into a directory, so that a reader may see any state in between. */
type Writer = (directory: string, name: string, text: string) => Promise<void>;

/** Truncates what is there: a reader may find nothing, or a half. */
const inPlace: Writer = async (directory, name, text) => {
  const file = openSync(join(directory, name), "w", 0o644);
  await sleep(20);
  writeSync(file, text.slice(0, text.length / 2));
  await sleep(20);
  writeSync(file, text.slice(text.length / 2));
  closeSync(file);
};

/** Renames a temporary file of the same directory. */
const renamed =
  (temporary: (name: string) => string, mode = 0o644): Writer =>
  async (directory, name, text) => {
    writeFileSync(join(directory, temporary(name)), text, { mode: 0o600 });
    chmodSync(join(directory, temporary(name)), mode);
    await sleep(20);
    renameSync(join(directory, temporary(name)), join(directory, name));
  };

/** Removes the file first: for a moment there is none. */
const recreated: Writer = async (directory, name, text) => {
  rmSync(join(directory, name), { force: true });
  await sleep(20);
  await inPlace(directory, name, text);
};

/** Leaves a file alone that holds what it would write. */
const unlessEqual =
  (writer: Writer): Writer =>
  async (directory, name, text) => {
    const path = join(directory, name);
    if (!existsSync(path) || readFileSync(path, "utf8") !== text) await writer(directory, name, text);
  };

interface Neighbour {
  readonly fixture: string;
  /** Its configuration. */
  readonly name: string;
  readonly writes: Writer;
  /** Configurations of others beside it. */
  readonly beside?: Readonly<Record<string, string>>;
}

/** One for each way of writing, and one beside which others' configurations lie. */
const NEIGHBOURS: Readonly<Record<string, Neighbour>> = {
  "Calico beside Podman": {
    fixture: "calico",
    name: "10-calico.conflist",
    writes: inPlace,
    beside: {
      "87-podman.conflist": '{"cniVersion":"0.4.0","name":"podman","plugins":[{"type":"bridge"}]}\n',
      "99-loopback.conf": '{"cniVersion":"0.3.1","name":"lo","type":"loopback"}\n',
    },
  },
  kindnet: { fixture: "kindnet", name: "10-kindnet.conflist", writes: recreated },
  "OVN-Kubernetes": {
    fixture: "ovn-kubernetes",
    name: "10-ovn-kubernetes.conf",
    writes: unlessEqual(renamed(() => "ovnkube-123456", 0o600)),
  },
};

const fixture = (folder: string, name: string) =>
  readFileSync(join(root, "test", "fixtures", "conflists", folder, name), "utf8");
/** Configuration that a newer version of a primary CNI writes. */
const newer = (text: string) => text.replace(/"cniVersion": *"([0-9.]+)"/, '$& , "x-newer": true');

let node: TestNode;
let installer: Installer;
beforeAll(buildPrograms);
beforeEach(() => {
  node = new TestNode({});
});
afterEach(async () => {
  await installer.stop("SIGKILL");
  node.delete();
});

/** Plugins that a runtime calls for a pod, by the first configuration; none if a file is half-written or just gone. */
function active(): { readonly types: readonly string[]; readonly text: string } {
  const [name = ""] = readdirSync(node.netDir)
    .filter((each) => /\.(conf|conflist|json)$/.test(each))
    .sort();
  try {
    const text = node.read(name);
    const { type, plugins = [{ type }] } = JSON.parse(text) as { type: string; plugins?: { type: string }[] };
    if (node.broken().length === 0) return { types: plugins.map((each) => each.type), text };
  } catch {
    // It is looked at again.
  }
  return { types: [], text: "" };
}

/** Waits until the runtime calls these plugins and then ours, which works. */
const chained = (primary: readonly string[], isOf = (_text: string) => true) =>
  until(`a chain of ${primary.join(", ")} and ours`, () => {
    const { types, text } = active();
    return types.slice(0, -1).join() === primary.join() && isPlugin(types.at(-1)) && isOf(text);
  });

describe.each(Object.entries(NEIGHBOURS))("%s", (_, { fixture: folder, name, writes, beside = {} }) => {
  const first = fixture(folder, name);
  const second = newer(first);
  const primary = JSON.parse(first).plugins?.map(({ type }: { type: string }) => type) ?? [JSON.parse(first).type];

  const write = (text: string) => writes(node.netDir, name, text);
  const follows = async (text: string) => {
    await chained(primary, (active) => active.includes("x-newer") === (text === second));
    for (const [other, content] of Object.entries(beside)) expect(node.read(other)).toBe(content);
  };
  const restored = (text: string) => {
    const files = Object.entries({ [name]: text, ...beside }).map(([file, content]) => [`net.d/${file}`, content]);
    expect(node.content()).toEqual(Object.fromEntries(files));
  };

  beforeEach(() => {
    for (const [other, content] of Object.entries(beside)) node.write(other, content);
  });

  test("is installed first, restarts, and is updated: the chain follows, and is removed without a trace", async () => {
    await write(first);
    installer = node.start();
    await follows(first);
    await write(first);
    await follows(first);
    await write(second);
    await follows(second);
    expect(await installer.stop()).toBe(0);
    restored(second);
  });

  test("is installed later, and updated while no installer runs", async () => {
    installer = node.start();
    await installer.says("linkerd-cni.journal\n");
    await write(first);
    await follows(first);
    await installer.stop("SIGKILL");
    await write(second);
    installer = node.start();
    await follows(second);
    expect(await installer.stop()).toBe(0);
    restored(second);
  });
});

test("Flannel, from a .conf to a .conflist of the same stem, gets both back", async () => {
  const [conf, conflist] = ["10-flannel.conf", "10-flannel.conflist"];
  const former = '{"name":"cbr0","cniVersion":"0.2.0","type":"flannel","delegate":{"isDefaultGateway":true}}\n';
  const text = fixture("flannel", conflist);
  await inPlace(node.netDir, conf, former);
  installer = node.start();
  await chained(["flannel"]);
  await renamed((name) => `${name}.tmp`)(node.netDir, conflist, text);
  // Without ours, runtimes would still take the .conf, which comes first.
  await chained(["flannel"]);
  expect(await installer.stop()).toBe(0);
  expect(node.content()).toEqual({ [`net.d/${conf}`]: former, [`net.d/${conflist}`]: text });
});

describe("on a runtime that reads drop-ins", () => {
  const RUNTIME = "containerd://2.2.9";
  let api: ApiStub;
  let reader: ReturnType<TestNode["readAsRuntime"]>;
  beforeAll(async () => {
    api = await ApiStub.start(json(200, { status: { nodeInfo: { containerRuntimeVersion: RUNTIME } } }));
  });
  afterAll(() => api.close());
  beforeEach(() => {
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    reader = node.readAsRuntime();
  });
  afterEach(() => reader.close());

  const start = (chaining: Chaining = "auto") =>
    node.start({ KUBERNETES_SERVICE_PORT: String(api.port), NODE_NAME: "node-1", CHAINING: chaining });
  const dropin = (text: string) => join(node.netDir, JSON.parse(text).name, "99-linkerd-cni.conf");
  /** Waits until ours is beside the list, which is as its owner has written it. */
  const isBeside = (name: string, text: string) =>
    until("the drop-in", () => existsSync(dropin(text)) && node.read(name) === text, 180);

  test("Cilium with cni.exclusive does not change a folder: ours works beside it, and neither writes again", async () => {
    const cilium = new ExclusiveCilium(node.netDir);
    installer = start("dropin");
    await installer.says(CHAINED_NOTE);
    await isBeside(ExclusiveCilium.file, cilium.text);
    expect(await installer.stop()).toBe(0);
    await cilium.stop();
    expect(cilium.writes).toBe(1);
    expect(node.content()).toEqual({ [`net.d/${ExclusiveCilium.file}`]: cilium.text });
  });
});

/** An agent of Cilium with cni.exclusive: at each change in the directory it writes its own, and renames all others. */
class ExclusiveCilium {
  static readonly file = "05-cilium.conflist";
  readonly text = fixture("cilium", ExclusiveCilium.file);
  private readonly watcher: FSWatcher;
  private readonly write = unlessEqual(async (...file) => {
    this.writes += 1;
    await renamed((name) => `.${name}123456`)(...file);
  });
  private last = Promise.resolve();
  /** How often it has written its file. */
  writes = 0;

  constructor(private readonly directory: string) {
    this.watcher = watch(directory, () => this.tidy());
    this.tidy();
  }

  async stop(): Promise<void> {
    this.watcher.close();
    await this.last;
  }

  private tidy(): void {
    this.last = this.last.then(async () => {
      await this.write(this.directory, ExclusiveCilium.file, this.text);
      const entries = readdirSync(this.directory, { withFileTypes: true });
      const others = entries.filter(
        (entry) =>
          !entry.isDirectory() && entry.name !== ExclusiveCilium.file && /\.(conf|conflist|json)$/.test(entry.name),
      );
      for (const { name } of others) renameSync(join(this.directory, name), join(this.directory, `${name}.cilium_bak`));
    });
  }
}

test("Cilium with cni.exclusive removes the chain each time: the log says so, and Cilium has its file", async () => {
  const cilium = new ExclusiveCilium(node.netDir);
  installer = node.start();
  await installer.says("waiting to change it again");
  expect(installer.log).toContain("another program changed");
  expect(await installer.stop()).toBe(0);
  await cilium.stop();
  expect(node.content()).toEqual({ [`net.d/${ExclusiveCilium.file}`]: cilium.text });
});
