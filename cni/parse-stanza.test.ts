import { CniError } from "./errors";
import { parseStanza } from "./parse-stanza";

const mode = (linkerd: object) => parseStanza({ linkerd: linkerd as never }, "pods").linkerd["iptables-mode"];

test.each([
  ["from the chart", { "iptables-mode": "nft", "redirect-mode": "native" }, "native"],
  ["a mode of the host, from the chart", { "iptables-mode": "legacy" }, "legacy"],
  ["as the chart formerly wrote it", { "iptables-mode": "native" }, "native"],
  ["with nothing", {}, "auto"],
])("the mode, %s", (_, linkerd, wanted) => {
  expect(mode(linkerd)).toBe(wanted);
});

test.each([
  [{ "redirect-mode": "nft" }, 'linkerd.redirect-mode: "nft" is not one of auto, native'],
  [
    { "redirect-mode": "auto", "iptables-mode": "x" },
    'linkerd.iptables-mode: "x" is not one of auto, native, nft, legacy, plain',
  ],
])("an unknown mode: %j", (linkerd, message) => {
  expect(() => mode(linkerd)).toThrow(new CniError(7, message));
});
