import { chownSync, statSync } from "node:fs";
import { join } from "node:path";
import { missing, suite } from "../support/requirements";
import { buildInstaller, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[{"type":"bridge"}]}\n';
const NAME = "10-k.conflist";

/** As the container runs: user 0, and no capability. */
const UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

suite("a configuration of another user's", missing({ root: true, programs: ["setpriv"] }), () => {
  let node: TestNode;
  beforeAll(buildInstaller);
  beforeEach(() => {
    node = new TestNode({ [NAME]: LIST });
    chownSync(join(node.netDir, NAME), 1_000, 1_001);
  });
  afterEach(() => node.delete());

  const owner = () => {
    const { uid, gid } = statSync(join(node.netDir, NAME));
    return `${uid}:${gid}`;
  };

  test("keeps its owner where the installer may give files away", async () => {
    const installer = node.start();
    await installer.says("ends in our stanza");
    expect(owner()).toBe("1000:1001");
    expect(await installer.stop()).toBe(0);
    expect(owner()).toBe("1000:1001");
    expect(installer.log).not.toContain("CAP_CHOWN");
  });

  test("is chained and comes back byte for byte without any capability, and the log says whose it is", async () => {
    const before = node.content();
    const installer = node.startAs(UNPRIVILEGED);
    await installer.says("ends in our stanza");
    expect(owner()).toBe("0:0");
    expect(installer.log.split(`${NAME} belongs to 0:0 instead of 1000:1001`)).toHaveLength(2);
    expect(await installer.stop()).toBe(0);
    expect(node.content()).toEqual(before);
  });

  test("of root's own comes back as the very file without any capability", async () => {
    chownSync(join(node.netDir, NAME), 0, 0);
    const { ino, mtimeMs } = statSync(join(node.netDir, NAME));
    const installer = node.startAs(UNPRIVILEGED);
    await installer.says("ends in our stanza");
    expect(await installer.stop()).toBe(0);
    expect(statSync(join(node.netDir, NAME))).toMatchObject({ ino, mtimeMs });
  });
});
