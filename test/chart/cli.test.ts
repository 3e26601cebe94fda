import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { runIn } from "../../cli/io.testing";
import { asText, typed, withAssignments } from "../../cli/set";
import { byName, documents, helm, helmSuite, template } from "./helm";

async function installCni(args: readonly string[]) {
  const { code, out } = await runIn({}, ["install-cni", ...args]);
  expect(code).toBe(0);
  return documents(out);
}

/** Assignments that helm and the command line have to read alike. */
const lines: readonly (readonly string[])[] = [
  [],
  ["--set", "proxyUID=2103,privileged=true,logLevel=debug"],
  ["--set", "ignoreInboundPorts=25\\,587\\,8000-8100,portsToRedirect=80"],
  ["--set", "tolerations[0].key=a,tolerations[0].operator=Equal,tolerations[0].value=b"],
  ["--set", "podLabels.a\\.b/c=x,commonLabels.team=mesh"],
  ["--set", "imagePullSecrets[0].name=one,imagePullSecrets[1].name=two"],
  ["--set", "extraInitContainers[0].name=a,extraInitContainers[0].image=b,extraInitContainers[0].args={x,y}"],
  ["--set", "nodeAffinity=null,repairController.enabled=true"],
  ["--set-string", "image.version=1.10,healthPort=9000,useWaitFlag=true"],
  ["--set", "resources=null,tolerations=null,image.version=null,updateStrategy.rollingUpdate=null"],
  ["--set", "resources.cpu.limit=1,resources.memory.request=64Mi", "--set", "resources.cpu.limit=2"],
];

helmSuite("install-cni prints what helm renders, and the namespace", () => {
  test.each(lines.map((args) => [args.join(" "), args] as const))("%s", async (_, args) => {
    const [namespace, ...others] = await installCni(args);
    expect(namespace?.kind).toBe("Namespace");
    // The hooks of helm test mean nothing to kubectl.
    expect(byName(others)).toEqual(byName(template(...args, "--skip-tests")));
  });
});

helmSuite("--set and --set-string read what helm reads", () => {
  const folder = mkdtempSync(join(tmpdir(), "set-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  beforeAll(() => {
    mkdirSync(join(folder, "templates"));
    writeFileSync(join(folder, "Chart.yaml"), "apiVersion: v2\nname: any\nversion: 1.0.0\n");
    const map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: any }\ndata: { values: {{ toJson .Values | quote }} }\n";
    writeFileSync(join(folder, "templates", "map.yaml"), map);
  });

  const readers = { "--set": typed, "--set-string": asText };

  /** Helm's result of an assignment; undefined if it refuses. */
  function byHelm(flag: string, text: string): unknown {
    const { status, stdout } = spawnSync(helm ?? "", ["template", folder, flag, text], { encoding: "utf8" });
    if (status !== 0) return undefined;
    return JSON.parse((documents(stdout)[0] as unknown as { data: { values: string } }).data.values);
  }

  function byUs(flag: keyof typeof readers, text: string): unknown {
    try {
      return withAssignments({}, text, readers[flag]);
    } catch {
      return undefined;
    }
  }

  const paths = ["a", "b", "a.b", "a[0]", "a[1]", "a[1][0]", "a[0].b", "a\\.b", "é"];
  const texts = ["", "1", "0", "-0", "+7", "07", "9223372036854775808", "True", "NULL", " x", "\\,", "🙂"];
  const text = fc.constantFrom(...texts);
  const list = fc.array(text, { maxLength: 3 }).map((items) => `{${items.join(",")}}`);
  const assignment = fc
    .tuple(fc.constantFrom(...paths), fc.oneof(text, list))
    .map(([path, value]) => `${path}=${value}`);
  const assignments = fc.array(assignment, { minLength: 1, maxLength: 4 }).map((some) => some.join(","));

  test("whatever it is", () => {
    const same = fc.property(fc.constantFrom("--set", "--set-string"), assignments, (flag, text) => {
      expect({ flag, text, read: byUs(flag, text) }).toEqual({ flag, text, read: byHelm(flag, text) });
    });
    fc.assert(same, { numRuns: 150 });
  });
});
