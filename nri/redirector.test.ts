import { readStanza } from "../cni/parse-stanza";
import { FakeHost } from "../host/fake.testing";
import type { Sandbox } from "./messages";
import { Redirector } from "./redirector";

const NETNS = "/run/netns/cart";
const proxied = { "linkerd.io/proxy-version": "edge" };

/** Decides about a pod, by default one without injection, with UID `found` in the API server. */
function redirect(found: string, uid: string | undefined, annotations: Readonly<Record<string, string>> = proxied) {
  const pod = {
    kind: "Pod",
    metadata: { name: "cart-0", namespace: "shop", uid: found, annotations },
    spec: { containers: [{ name: "app" }] },
  };
  const get = () => ({ status: 200, body: JSON.stringify(pod) });
  const host = new FakeHost({ namespaces: [NETNS] });
  const stanza = readStanza({}, "linkerd-cni");
  const sandbox: Sandbox = {
    id: "1",
    name: "cart-0",
    namespace: "shop",
    labels: {},
    annotations,
    netns: NETNS,
    hasAddress: true,
    ...(uid === undefined ? {} : { uid }),
  };
  const redirector = new Redirector({ host, stanza, netnsDir: "/run/netns", chained: false, get });
  return redirector.redirect(sandbox, { mayBeGone: false });
}

it("decides by the pod itself, not by another pod with its name", () => {
  const skipped = expect.objectContaining({ kind: "skipped" });
  expect(redirect("first", "first")).toEqual(skipped);
  expect(redirect("first", undefined)).toEqual(skipped);
  expect(() => redirect("second", "first")).toThrow("another has taken this pod's name");
});

it("reports why only the annotations decided", () => {
  const injected = { ...proxied, "linkerd.io/created-by": "linkerd/proxy-injector edge" };
  expect(redirect("second", "first", injected)).toEqual({
    kind: "redirected",
    unanswered: expect.stringContaining("another has taken this pod's name"),
  });
});
