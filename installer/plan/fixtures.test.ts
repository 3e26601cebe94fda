import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apply, nodeDisk } from "../apply/disk";
import { writePrimaryPlugins } from "../primary-plugins.testing";
import { observe } from "../state/observe";
import { pluginFile } from "../state/plugin-file";
import type { Change } from "./change";
import { activeOf, planInstall, planRemoval, pristine, STEPS } from "./plan";

const fixtures = join(__dirname, "..", "..", "test", "fixtures", "conflists");

/** The fixture, its active configuration, and the file that contains the chain afterwards. */
const cases: readonly (readonly [string, string, string])[] = [
  ["calico", "10-calico.conflist", "10-calico.conflist"],
  ["cilium", "05-cilium.conflist", "05-cilium.conflist"],
  ["cilium-portmap", "05-cilium.conflist", "05-cilium.conflist"],
  ["flannel", "10-flannel.conflist", "10-flannel.conflist"],
  ["flannel-0.2.0", "10-flannel.conflist", "10-flannel.conflist"],
  ["weave", "10-weave.conflist", "10-weave.conflist"],
  ["bridge-conf-0.3.1", "10-mynet.conf", "10-mynet.conf.linkerd-cni.conflist"],
  ["bridge-conf-1.0.0", "10-mynet.conf", "10-mynet.conf.linkerd-cni.conflist"],
  ["ovn-kubernetes", "10-ovn-kubernetes.conf", "10-ovn-kubernetes.conf.linkerd-cni.conflist"],
  ["aws-vpc-cni", "10-aws.conflist", "10-aws.conflist"],
  ["azure", "10-azure.conflist", "10-azure.conflist"],
  ["gke", "10-gke-ptp.conflist", "10-gke-ptp.conflist"],
  ["gke-containerd", "10-containerd-net.conflist", "10-containerd-net.conflist"],
  ["kindnet", "10-kindnet.conflist", "10-kindnet.conflist"],
  ["k3s", "10-flannel.conflist", "10-flannel.conflist"],
  ["multus-thin", "00-multus.conf", "00-multus.conf.linkerd-cni.conflist"],
  ["multus-thick", "00-multus.conf", "00-multus.conf.linkerd-cni.conflist"],
  ["openshift", "00-multus.conf", "00-multus.conf.linkerd-cni.conflist"],
  ["crio-bridge", "100-crio-bridge.conflist", "100-crio-bridge.conflist"],
  ["podman-beside", "10-calico.conflist", "10-calico.conflist"],
  ["two-files", "10-first.conflist", "10-first.conflist"],
  ["disabled-files", "20-kube-router.conflist", "20-kube-router.conflist"],
  ["json-extension", "10-mynet.json", "10-mynet.json.linkerd-cni.conflist"],
  ["antrea", "10-antrea.conflist", "10-antrea.conflist"],
  ["canal", "10-canal.conflist", "10-canal.conflist"],
  ["bandwidth-tuning-1.1.0", "01-net.conflist", "01-net.conflist"],
  ["istio-chained", "10-calico.conflist", "10-calico.conflist"],
  ["windows-line-ends", "10-crlf.conflist", "10-crlf.conflist"],
  ["odd-numbers", "10-odd.conflist", "10-odd.conflist"],
  ["same-stem", "10-net.conf", "10-net.conf.linkerd-cni.conflist"],
  ["broken-first", "10-net.conflist", "10-net.conflist"],
];

const stanza = { type: "linkerd-cni", kubernetes: { kubeconfig: "/etc/cni/net.d/k" } };
const plugin = { ...pluginFile(), isCopy: () => true };
const make = (changes: readonly Change[]) => apply(changes, nodeDisk, () => true);

function contents(directory: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "latin1")]),
  );
}

let root: string;
let bin: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "linkerd-cni-fixture-"));
  bin = mkdtempSync(join(tmpdir(), "linkerd-cni-fixture-bin-"));
  writePrimaryPlugins(bin);
});
afterEach(() => {
  for (const directory of [root, bin]) rmSync(directory, { recursive: true });
});

test("every fixture is tested", () => {
  expect(cases.map(([name]) => name).sort()).toEqual(readdirSync(fixtures).sort());
});

test.each(cases)("%s: installed, checked and removed", async (fixture, active, chainFile) => {
  cpSync(join(fixtures, fixture), root, { recursive: true });
  const before = contents(root);
  const at = (name: string) => join(root, name);
  const paths = {
    mountPrefix: "",
    mounted: [root, bin],
    netDir: root,
    binDir: bin,
    onNode: { netDir: root, binDir: bin },
    plugins: [at("linkerd-cni")],
    image: at("image"),
    attached: at("linkerd-cni.attached"),
    kubeconfig: at("k"),
    journal: at("linkerd-cni.journal"),
    reread: at("linkerd-cni.reread.linkerd-cni-tmp"),
    directories: at("run/directories.json"),
  };
  const install = () =>
    planInstall(observe(paths, plugin), paths, {
      owner: "me",
      chained: true,
      chaining: "auto",
      stanza,
    });

  expect(activeOf(pristine(observe(paths, plugin)))?.name).toBe(active);
  const plan = install();
  for (const step of STEPS) await make(plan.steps[step]);
  expect(plan.chain).toBe(at(chainFile));
  const again = install();
  expect([again.chain, again.active, STEPS.flatMap((step) => again.steps[step])]).toEqual([at(chainFile), active, []]);

  const original = JSON.parse(before[active] ?? "");
  const chained = JSON.parse(contents(root)[chainFile] ?? "");
  const list = active.endsWith(".conflist");
  expect(chained).toEqual({
    ...(list ? original : { name: original.name, cniVersion: original.cniVersion }),
    plugins: [...(list ? original.plugins : [original]), stanza],
  });
  const others = Object.entries(before).filter(([name]) => name !== active);
  expect(contents(root)).toMatchObject(Object.fromEntries(others));

  await make(planRemoval(observe(paths, plugin), paths, false));
  expect(contents(root)).toEqual(before);
});
