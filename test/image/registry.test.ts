/** README's commands that push the image to a registry of one's own, against a real registry. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { outputs, root } from "../../build/paths";
import { version } from "../../constructs";
import { findProgram } from "../chart/helm";
import { OciRegistry } from "../support/oci-registry";
import { freePort } from "../support/ports";
import { missing, suite } from "../support/requirements";

process.env["PATH"] = [join(root, ".cache", "bin"), process.env["PATH"]].join(delimiter);
const helm = findProgram("helm", process.env["HELM"]);

const lacks =
  missing({ programs: ["skopeo", "docker-registry"] }) ??
  (helm === undefined ? "helm" : undefined) ??
  (existsSync(outputs.image) ? undefined : "the image: npm run image");

/** The line of README that begins with a program. */
const line = (program: string) =>
  new RegExp(`^${program} .*`, "m").exec(readFileSync(join(root, "README.md"), "utf8"))?.[0] ?? "";

interface Index {
  readonly manifests: readonly { readonly platform: { readonly architecture: string } }[];
}

suite("README's way without a release", lacks, () => {
  const directory = mkdtempSync(join(tmpdir(), "registry-"));
  let registry: OciRegistry | undefined;
  afterAll(async () => {
    await registry?.stop();
    rmSync(directory, { recursive: true });
  });

  test("the registry has the image that the chart then names, for both architectures", async () => {
    registry = await OciRegistry.start(await freePort(), directory);
    const { address } = registry;
    const run = (command: string) =>
      execFileSync("sh", ["-c", command.replace("REGISTRY", address)], { cwd: root, encoding: "utf8", stdio: "pipe" });
    // The registry of the test has no certificate.
    run(line("skopeo copy").replace("skopeo copy", "skopeo copy --dest-tls-verify=false"));
    const chart = run(line("helm install").replace("helm install", `"${helm}" template --kube-version v1.34.0`));
    const images = new Set([...chart.matchAll(/image: "?([^"\n]+)/g)].map(([, image = ""]) => image));
    expect([...images]).toEqual([`${address}/linkerd-cni:${version}`]);
    const index = JSON.parse(
      run(`skopeo inspect --raw --tls-verify=false docker://REGISTRY/linkerd-cni:${version}`),
    ) as Index;
    expect(index.manifests.map(({ platform }) => platform.architecture).sort()).toEqual(["amd64", "arm64"]);
  });
});
