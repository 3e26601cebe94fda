import { chmodSync, chownSync, statSync } from "node:fs";
import { join } from "node:path";
import { INSTALLER_CAPABILITIES } from "../../constructs/pod";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[{"type":"bridge"}]}\n';
const NAME = "10-k.conflist";

/** Runs as user 0 with these capabilities only. */
const withCapabilities = (...names: readonly string[]) => [
  "setpriv",
  `--bounding-set=${["-all", ...names.map((name) => `+${name.toLowerCase()}`)].join(",")}`,
  "--inh-caps=-all",
];

/** As the chart's container runs. */
const AS_INSTALLED = withCapabilities(...INSTALLER_CAPABILITIES);

suite("a configuration of another user's", missing({ root: true, programs: ["setpriv"] }), () => {
  let node: TestNode;
  let installer: Installer;
  beforeAll(buildPrograms);
  beforeEach(() => {
    node = new TestNode({ [NAME]: LIST });
    chownSync(join(node.netDir, NAME), 1_000, 1_001);
  });
  afterEach(async () => {
    await installer.stop("SIGKILL");
    node.delete();
  });

  const owner = () => {
    const { uid, gid } = statSync(join(node.netDir, NAME));
    return `${uid}:${gid}`;
  };

  test("keeps its owner if the installer may change owners", async () => {
    installer = node.start();
    await installer.says("ends in our stanza");
    expect(owner()).toBe("1000:1001");
    expect(await installer.stop()).toBe(0);
    expect(owner()).toBe("1000:1001");
    expect(installer.log).not.toContain("CAP_CHOWN");
  });

  test("is chained and restored byte for byte without any capability, and the log names the owner", async () => {
    const before = node.content();
    installer = node.startAs(withCapabilities());
    await installer.says("ends in our stanza");
    expect(owner()).toBe("0:0");
    expect(installer.log.split(`${NAME} belongs to 0:0 instead of 1000:1001`)).toHaveLength(2);
    expect(await installer.stop()).toBe(0);
    expect(node.content()).toEqual(before);
  });

  test("that only its owner may read may be in force: the node is not ready, and the log names the remedy", async () => {
    node.write("20-other.conflist", LIST);
    chmodSync(join(node.netDir, NAME), 0o600);
    installer = node.startAs(withCapabilities());
    await installer.says(`${NAME} cannot be read (EACCES): it comes first`);
    expect(installer.log).toContain("the capability DAC_OVERRIDE, or privileged");
    expect(installer.log).not.toContain("ends in our stanza");
    expect(installer.log).not.toContain(`${NAME} cannot be read (EACCES): skipped`);
    chmodSync(join(node.netDir, NAME), 0o644);
    await installer.says(`${NAME} ends in our stanza`);
    expect(node.read("20-other.conflist")).toBe(LIST);
    expect(await installer.stop()).toBe(0);
  });

  test("is restored as the same file in the chart's container, in directories of another user", async () => {
    for (const directory of [node.netDir, node.binDir]) {
      chownSync(directory, 1_000, 1_001);
      chmodSync(directory, 0o755);
    }
    chmodSync(join(node.netDir, NAME), 0o600);
    const { ino, mtimeMs } = statSync(join(node.netDir, NAME));
    const before = node.content();
    installer = node.startAs(AS_INSTALLED);
    await installer.says("ends in our stanza");
    expect(node.isChained(NAME)).toBe(true);
    expect(node.broken()).toEqual([]);
    expect(await installer.stop()).toBe(0);
    expect(node.content()).toEqual(before);
    expect(statSync(join(node.netDir, NAME))).toMatchObject({ ino, mtimeMs, uid: 1_000, gid: 1_001, mode: 0o100600 });
  });
});
