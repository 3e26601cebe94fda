import { runIn } from "../../cli/io.testing";
import { byName, documents, helm, template } from "./helm";

const suite = helm === undefined ? describe.skip : describe;
const title = helm === undefined ? " (no helm: set HELM or put it on PATH)" : "";

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
  ["--set", "nodeAffinity=null,enablePSP=true,repairController.enabled=true"],
  ["--set-string", "image.version=1.10,healthPort=9000,useWaitFlag=true"],
  ["--set", "resources.cpu.limit=1,resources.memory.request=64Mi", "--set", "resources.cpu.limit=2"],
];

suite(`install-cni prints what helm renders, and the namespace${title}`, () => {
  test.each(lines.map((args) => [args.join(" "), args] as const))("%s", async (_, args) => {
    const [namespace, ...others] = await installCni(args);
    expect(namespace?.kind).toBe("Namespace");
    expect(byName(others)).toEqual(byName(template(...args)));
  });
});
