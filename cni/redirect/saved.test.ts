import { examples } from "./examples.testing";
import { restoreText } from "./iptables";
import { redirectRules } from "./rules";
import { savedDifference } from "./saved";

const [usual] = redirectRules(examples.usual);
const fresh = restoreText(usual!, "");

describe("the rules that iptables-save prints", () => {
  it.each(Object.entries(examples))("are accepted after ADD: example %s", (_, options) => {
    for (const set of redirectRules(options)) expect(savedDifference(set.family, restoreText(set, ""))).toBeUndefined();
  });

  /** The time in every comment, as written by older versions of linkerd-init and of linkerd's plugin. */
  const stamped = fresh.replace(/(--comment "proxy-init\/[^"]+)"/g, '$1/1651669200"');

  it("are accepted from an older linkerd-init, which wrote the time into every comment", () => {
    expect(stamped).toContain('"proxy-init/install-proxy-init-output/1651669200" -j PROXY_INIT_OUTPUT');
    expect(savedDifference("ip", stamped)).toBeUndefined();
  });

  it("are accepted beside rules of others", () => {
    expect(savedDifference("ip", `-A OUTPUT -m addrtype --dst-type LOCAL -j DOCKER\n${fresh}`)).toBeUndefined();
  });

  it.each([
    ["nothing", "", "PREROUTING: the jump to PROXY_INIT_REDIRECT is missing"],
    [
      "another last verdict",
      fresh.replace("-j REDIRECT --to-ports 4140", "-j RETURN"),
      "PROXY_INIT_OUTPUT: the last rule does not redirect",
    ],
    ["one rule more", `${fresh}-A PROXY_INIT_OUTPUT -j ACCEPT\n`, 'PROXY_INIT_OUTPUT -j ACCEPT" was added'],
    [
      "no rule for loopback",
      fresh.replace(/-A PROXY_INIT_OUTPUT -o lo.*\n/, ""),
      "proxy-init/ignore-loopback is missing",
    ],
    [
      "no redirect",
      fresh.replace(/-A PROXY_INIT_REDIRECT .*REDIRECT.*\n/, ""),
      "PROXY_INIT_REDIRECT: the last rule does not redirect",
    ],
  ])("differ by %s", (_, saved, difference) => {
    expect(savedDifference("ip", saved)).toMatch(/^ip nat, /);
    expect(savedDifference("ip", saved)).toContain(difference);
  });
});
