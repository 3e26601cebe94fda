/** The former release's image under this chart, and this image under the former chart, as in the middle of an upgrade. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { IMAGE_NAME } from "../../build/image/image";
import { outputs } from "../../build/paths";
import { version } from "../../constructs";
import { suite } from "../support/requirements";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { importImage } from "./images";
import { pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const former = process.env["PREVIOUS_PEER"] ?? "";
const FORMER = {
  chart: join(former, "dist", "charts", "linkerd2-cni"),
  image: join(former, "dist", "image", "linkerd-cni.oci.tar"),
} as const;
const lacks =
  former !== "" && existsSync(FORMER.image)
    ? undefined
    : "PREVIOUS_PEER: a checkout of the former release that is built";

/** Tags here: both may have the same version before the first release. */
const TAGS = { former: "former", current: "current" } as const;
type Release = keyof typeof TAGS;

/** The chart and the image that follow each other: each pair, and each change of one alone. */
const STEPS: readonly (readonly [chart: Release, image: Release])[] = [
  ["former", "current"],
  ["current", "current"],
  ["current", "former"],
  ["former", "former"],
  ["current", "current"],
];

clusterSuite("releases that differ by one", (cluster) => {
  suite("the former and this one", lacks, () => {
    const images = (...args: readonly string[]) =>
      cluster.machine.run(["ctr", "--namespace=k8s.io", "images", ...args]);
    /** The names that archives give to our images. */
    const named = async () =>
      (await images("list", "--quiet"))
        .split("\n")
        .filter((name) => name.startsWith(`${IMAGE_NAME}:`) && !/:(former|current)$/.test(name));

    const importAs = async (tag: string, archive: string) => {
      for (const name of await named()) await images("remove", name);
      await importImage(cluster.machine, archive);
      for (const name of await named()) await images("tag", name, `${IMAGE_NAME}:${tag}`);
    };

    beforeAll(async () => {
      await importAs(TAGS.former, FORMER.image);
      await importAs(TAGS.current, outputs.image);
      await cluster.kubectl.start(pod("client"));
    });

    test("each chart works with each image, while meshed pods start: none fails, all are redirected", async () => {
      const before = await cluster.directories();
      const release = ["linkerd-cni", "--namespace=linkerd-cni", "--create-namespace"];
      const use = async (chart: Release, image: Release) => {
        const path = chart === "former" ? FORMER.chart : join(outputs.charts, "linkerd2-cni");
        await cluster.helm("upgrade", "--install", ...release, path, "--set", `image.version=${TAGS[image]}`);
        await cluster.rolledOut();
        expect(await cluster.chain()).toEqual(["bridge", "portmap", "linkerd-cni"]);
        return cluster.executables();
      };
      const executables = { former: await use("former", "former"), current: [""] };
      const failures = await cluster.failures();
      const stream = new PodStream(cluster.kubectl, "client");
      for (const [chart, image] of STEPS) {
        const found = await use(chart, image);
        if (executables.current[0] === "") executables.current = found;
        expect([chart, image, found]).toEqual([chart, image, executables[image]]);
        // Some of this pair alone.
        const { started } = stream;
        const enough = async () => {
          await stream.check();
          return stream.started >= started + 16;
        };
        await until("pods of this pair", enough);
      }
      const { started, notRedirected } = await stream.stop();
      process.stdout.write(`${started} meshed pods under ${STEPS.length} pairs of chart and image of ${version}\n`);
      expect(executables.former).not.toEqual(executables.current);
      expect(notRedirected).toEqual([]);
      expect(await cluster.failures()).toEqual(failures);
      await cluster.uninstall();
      expect(differences(before, await cluster.directories())).toEqual([]);
    }, 480_000);
  });
});
