import { join } from "node:path";
import { App } from "cdk8s";
import { addManifests, synthesize } from "./synth";

/** Run by cdk8s, writes manifests to the folder that cdk8s names; otherwise writes `dist`. */
async function main(outdir: string | undefined): Promise<void> {
  if (outdir === undefined) return synthesize(join(__dirname, ".."));
  const app = new App({ outdir });
  addManifests(app);
  app.synth();
}

main(process.env["CDK8S_OUTDIR"]).catch((error: unknown) => {
  process.stderr.write(`charts: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
