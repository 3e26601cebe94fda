import { CniError } from "./errors";
import { parseNetworkConfig } from "./network-config";
import { previousResults } from "./previous-results.testing";
import { passResult, previousResult, resultText } from "./result";
import { type CniVersion, VERSIONS } from "./versions";

const full = {
  interfaces: [{ name: "eth0", mac: "02:00:00:00:00:01", mtu: 1500, socketPath: "/s", pciID: "p", sandbox: "/ns" }],
  ips: [
    { address: "10.0.0.2/24", gateway: "10.0.0.1", interface: 0 },
    { address: "fd00::2/64", interface: -1 },
  ],
  routes: [{ dst: "0.0.0.0/0", mtu: 1400, advmss: 1360, priority: 1, table: 0, scope: 0 }],
  dns: { nameservers: ["10.0.0.1"], unknown: true },
  extra: [1, null],
};
const versioned = { ...full, ips: full.ips.map((ip, index) => ({ version: index === 0 ? "4" : "6", ...ip })) };
const stripped = {
  ...full,
  interfaces: [{ name: "eth0", mac: "02:00:00:00:00:01", sandbox: "/ns" }],
  routes: [{ dst: "0.0.0.0/0" }],
};
const both = { ...stripped, ips: versioned.ips };

describe("a previous result that linkerd's plugin", () => {
  it.each(previousResults.map(({ version, text, verdict, place = "" }) => [verdict, version, text, place] as const))(
    "%s: of version %s, %s",
    (verdict, version, text, place) => {
      const config = parseNetworkConfig(`{"cniVersion":"${version}","name":"pods","prevResult":${text}}`);
      const pass = () => resultText(config, version);
      if (verdict === "refuses") {
        expect(pass).toThrow(CniError);
        expect(pass).toThrow(place === "" ? "prevResult" : `prevResult.${place}`);
      } else if (JSON.parse(text)?.cniVersion === version) expect(pass()).toBe(text);
      else expect(JSON.parse(pass())).toEqual({ ...JSON.parse(text), cniVersion: version });
    },
  );
});

it.each(VERSIONS)("previous results of version %s are among those that linkerd's plugin is asked about", (version) => {
  expect(previousResults.map((each) => each.version)).toContain(version);
});

describe("a previous result", () => {
  it.each<[CniVersion, CniVersion, object, object]>([
    ["1.1.0", "1.1.0", full, full],
    ["0.3.0", "0.4.0", versioned, versioned],
    ["0.4.0", "1.1.0", versioned, full],
    ["0.3.1", "1.0.0", both, stripped],
    ["1.1.0", "1.0.0", full, stripped],
    ["1.0.0", "0.4.0", stripped, both],
    ["1.1.0", "0.3.0", full, both],
    ["1.0.0", "1.1.0", stripped, stripped],
  ])("of version %s in version %s", (from, to, given, wanted) => {
    expect(passResult({ ...given, cniVersion: from }, to)).toEqual({ ...wanted, cniVersion: to });
  });

  it("keeps the order of its members, and version first on an address", () => {
    const given = { dns: {}, cniVersion: "1.0.0", ips: [{ gateway: "10.0.0.1", address: "10.0.0.2/24" }] };
    expect(JSON.stringify(passResult(given, "1.0.0"))).toBe(JSON.stringify(given));
    expect(JSON.stringify(passResult(given, "0.4.0"))).toContain('[{"version":"4","gateway"');
  });

  it("without a version has the configuration's", () => {
    expect(passResult({ ips: [] }, "0.4.0")).toEqual({ cniVersion: "0.4.0", ips: [] });
    expect(passResult({ cniVersion: "", ips: [] }, "0.4.0")).toEqual({ cniVersion: "0.4.0", ips: [] });
  });

  it("of the old form passes unchanged, and cannot be converted", () => {
    const old = { cniVersion: "0.2.0", ip4: { ip: "10.0.0.2/24" }, dns: {} };
    expect(passResult(old, "0.2.0")).toEqual(old);
    expect(passResult(old, "0.1.0")).toEqual({ ...old, cniVersion: "0.1.0" });
    expect(() => passResult(old, "1.0.0")).toThrow(/0\.2\.0.*1\.0\.0/);
  });

  it("may be absent", () => {
    expect(previousResult({})).toBeUndefined();
    expect(previousResult({ prevResult: null })).toBeUndefined();
    expect(passResult(undefined, "1.0.0")).toEqual({ cniVersion: "1.0.0" });
  });

  it("is refused if it is not a result", () => {
    expect(() => previousResult({ prevResult: [] })).toThrow(/prevResult/);
    expect(() => passResult({ cniVersion: 1 }, "1.0.0")).toThrow(/prevResult\.cniVersion/);
    expect(() => passResult({ cniVersion: "2.0.0" }, "1.0.0")).toThrow(/2\.0\.0/);
  });
});
