import { readStanza } from "../cni/parse-stanza";
import { FakeHost } from "../host/fake.testing";
import type { Sandbox } from "./messages";
import { Redirector } from "./redirector";

const NETNS = "/run/netns/cart";
const proxied = { "linkerd.io/proxy-version": "edge" };

/** Asks about a pod, by default one that Linkerd's injector did not inject, of which the API server has the UID `found`. */
function redirect(found: string, uid: string | undefined, annotations: Readonly<Record<string, string>> = proxied) {
  const pod = {
    kind: "Pod",
    metadata: { name: "cart-0", namespace: "shop", uid: found, annotations },
    spec: { containers: [{ name: "app" }] },
  };
  const api = {
    get: () => ({ status: 200, body: JSON.stringify(pod) }),
    credentials: "/token",
    renewedBy: "the kubelet",
  };
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
  return new Redirector({ host, stanza, netnsDir: "/run/netns", api }).redirect(sandbox, { mayBeGone: false });
}

it("decides about a pod by that pod, not by another of its name", () => {
  const skipped = expect.objectContaining({ kind: "skipped" });
  expect(redirect("first", "first")).toEqual(skipped);
  expect(redirect("first", undefined)).toEqual(skipped);
  expect(() => redirect("second", "first")).toThrow("another has taken this pod's name");
});

it("says why the annotations alone decided", () => {
  const injected = { ...proxied, "linkerd.io/created-by": "linkerd/proxy-injector edge" };
  expect(redirect("second", "first", injected)).toEqual({
    kind: "redirected",
    unanswered: expect.stringContaining("another has taken this pod's name"),
  });
});
