/** With Linkerd's own command line (its folder: LINKERD_PEER): README's commands in order, and our command as its extension. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../build/paths";
import { CliCluster, cliMissing, shopPod } from "../support/cli";
import type { ApiObject } from "../support/real-api";
import { suite } from "../support/requirements";

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

  describe("with our command as its extension", () => {
    /** What `linkerd check` says of our checks, for people and for programs. */
    async function checked() {
      const { out } = await cluster.shell("linkerd check --wait 1s", root, peer);
      const json = await cluster.shell("linkerd check --wait 1s --output json 2>/dev/null", root, peer);
      return { out, json: json.out };
    }

    test("linkerd check warns in a cluster without the plugin", async () => {
      const { out, json } = await checked();
      const problem = "DaemonSet linkerd-cni/linkerd-cni is not there: the plugin is not installed";
      expect(out).toMatch(new RegExp(`‼ DaemonSet linkerd-cni is there\\n +${problem}\\n +see https://`));
      expect(json).toContain(problem);
    });

    test("linkerd check prints our checks, good and bad", async () => {
      await cluster.kubectl("create", "namespace", "linkerd-cni");
      const installed = await cluster.piped(["install-cni"], "apply", "-f", "-");
      expect(installed.code).toBe(0);
      const { out, json } = await checked();
      expect(out).toMatch(/^√ DaemonSet linkerd-cni is there$/m);
      const { checks } = json
        .split(/^(?=\{)/m)
        .flatMap((text) => JSON.parse(text).categories ?? [])
        .find(({ categoryName }: { categoryName: string }) => categoryName === "linkerd-cni-nodes");
      const failed = checks.find(({ result }: { result: string }) => result !== "success");
      expect(out).toContain(failed.error);
      expect(out).toContain(failed.hint);
    });

    test("linkerd cni explains a pod", async () => {
      await cluster.kubectl("create", "namespace", "shop");
      await cluster.api.create(
        shopPod("cart", { annotations: { "linkerd.io/inject": "disabled" } }, ["app"]) as ApiObject,
      );
      const { code, out } = await cluster.shell("linkerd cni explain shop/cart", root, peer);
      expect([code, out]).toEqual([0, expect.stringContaining("shop/cart: left alone")]);
    });
  });
});
