/**
 * A node with a full disk: what works continues, no file is half-written, and the installer continues when space is
 * free.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ApiStub, json } from "../support/api-server";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { type Installer, TestNode } from "./installer-node";

const NAME = "10-k.conflist";
const LIST = `${JSON.stringify({ cniVersion: "1.0.0", name: "k", plugins: [{ type: "bridge" }] })}\n`;
/** As long as a page, so that the file does not fit in place of another one either. */
const LONG = LIST.replace("{", `{${" ".repeat(8_192)}`);

suite("a configuration directory without space", missing({ root: true, programs: ["mount", "umount"] }), () => {
  let api: ApiStub;
  let node: TestNode;
  let installer: Installer;
  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start(json(200, {}));
  });
  afterAll(() => api.close());
  beforeEach(() => {
    node = new TestNode({});
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "tmpfs", node.netDir]);
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    node.write(NAME, LONG);
  });
  afterEach(async () => {
    await installer.stop("SIGKILL");
    execFileSync("umount", ["--lazy", node.netDir]);
    node.delete();
  });

  const filler = () => join(node.netDir, "filler");
  /** Uses all free space. */
  function fill(): void {
    try {
      writeFileSync(filler(), Buffer.alloc(1 << 20));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
    }
  }
  const free = () => rmSync(filler());
  const start = () => node.start({ KUBERNETES_SERVICE_PORT: String(api.port) });
  const temporary = () => readdirSync(node.netDir).filter((name) => name.endsWith("-tmp"));

  test("is chained when space is free, and keeps its list until then", async () => {
    fill();
    installer = start();
    await installer.says("ENOSPC");
    expect(node.read(NAME)).toBe(LONG);
    free();
    await installer.says("ends in our stanza");
    expect(node.broken()).toEqual([]);
  });

  test("is left with all that its chain needs if it is uninstalled then, and without a trace the next time", async () => {
    installer = start();
    await installer.says("ends in our stanza");
    fill();
    await installer.stop();
    expect(node.broken()).toEqual([]);
    expect(temporary()).toEqual([]);
    free();
    installer = start();
    await installer.says("ends in our stanza");
    expect(await installer.stop()).toBe(0);
    expect(node.content()).toEqual({ [`net.d/${NAME}`]: LONG });
  });
});
