/** README's commands that install Linkerd, by Linkerd's own command line (its folder: LINKERD_PEER), in order. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../build/paths";
import { CliCluster, cliMissing } from "../support/cli";
import { suite } from "../support/requirements";

jest.setTimeout(300_000);

const peer = process.env["LINKERD_PEER"] ?? "";

/** The commands of README, without what follows a `#`. */
const commands = readFileSync(join(root, "README.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("linkerd install "))
  .map((line) => line.replace(/ +#.*/, ""));

suite("Linkerd's own command", cliMissing() ?? (peer === "" ? "LINKERD_PEER" : undefined), () => {
  let cluster: CliCluster;
  beforeAll(async () => {
    cluster = await CliCluster.start();
  });
  afterAll(() => cluster?.close());

  test("installs Linkerd as README shows: first its kinds, then its control plane", async () => {
    const [kinds = "", controlPlane = "", ...others] = commands;
    expect(others).toEqual([]);
    expect(await cluster.shell(controlPlane, root, peer)).not.toMatchObject({ code: 0 });
    expect(await cluster.shell(kinds, root, peer)).toMatchObject({ code: 0 });
    await cluster.kubectl("wait", "--for=condition=established", "--timeout=60s", "crd", "--all");
    expect(await cluster.shell(controlPlane, root, peer)).toMatchObject({ code: 0 });
    expect(await cluster.kubectl("get", "deployments", "-n", "linkerd", "-o", "name")).toContain("linkerd-destination");
  });
});
