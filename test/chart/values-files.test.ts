import { join } from "node:path";
import { constructed, linkerd2Cni } from "./charts";
import { byName, helmSuite, template, templateRefusal } from "./helm";
import { files, folder, given } from "./values-files";

const IMAGE = "is the image of linkerd's own chart, which cannot run here: take `image` out of your values";

/** Refused files, with the messages of helm and of the constructs. */
const refused: Readonly<Record<string, readonly [string, string]>> = {
  "linkerd-defaults-with-image.yaml": [IMAGE, IMAGE],
  "refused-linkerds-image.yaml": [IMAGE, IMAGE],
  "refused-root-proxy.yaml": ["at '/proxyUID': minimum: got 0, want 1", "proxyUID: 0 is less than 1"],
  "refused-reversed-range.yaml": both(
    'ignoreInboundPorts: "8100-8000" has 8100-8000, which is not a port or a range low-high between 0 and 65535',
  ),
  "refused-port-name.yaml": both(
    'ignoreOutboundPorts: "25,mysql" has mysql, which is not a port or a range low-high between 0 and 65535',
  ),
  "refused-host-network-surge.yaml": both("leave maxSurge and maxUnavailable out, or set maxSurge to 0"),
  "refused-repair-port.yaml": both("healthPort: 9990 is the repair controller's own port"),
  "refused-iptables-mode.yaml": [
    "at '/iptablesMode': value must be one of 'auto', 'native', 'nft', 'legacy', 'plain'",
    'iptablesMode: "nftables" is not one of auto, native, nft, legacy, plain',
  ],
  "refused-nri-mode.yaml": both('iptablesMode: "legacy" needs iptables of the host, which the NRI plugin cannot call'),
  "refused-nri-index.yaml": ["at '/nri/index'", 'nri.index: "100" is not an index of two digits such as 10'],
  "refused-relative-directory.yaml": ["at '/destCNIBinDir': 'opt/cni/bin' does not match", "is not an absolute path"],
};

function both(message: string): readonly [string, string] {
  return [message, message];
}

const taken = files.filter((name) => !(name in refused));

helmSuite("values files of users", () => {
  test("linkerd's own values and at least twenty others are tried", () => {
    expect(files).toEqual(expect.arrayContaining(["linkerd-defaults.yaml", ...Object.keys(refused)]));
    expect(taken.length).toBeGreaterThanOrEqual(21);
  });

  test.each(taken)("%s renders, as the constructs do", (name) => {
    const rendered = template("--values", join(folder, name));
    expect(byName(rendered)).toEqual(byName(constructed(linkerd2Cni, given(name), "linkerd-cni")));
  });

  test.each(Object.entries(refused))("%s is refused", (name, [byHelm, byConstructs]) => {
    expect(templateRefusal("--values", join(folder, name))).toContain(byHelm);
    expect(() => constructed(linkerd2Cni, given(name), "linkerd-cni")).toThrow(byConstructs);
  });
});
