import { countDefinitions } from "./count";
import type { Definition } from "./definition";

const namespace = (name: string, value?: string, terminating = false) => ({
  name,
  annotations: value === undefined ? {} : { "linkerd.io/multus": value },
  terminating,
});
const owned = (ours: boolean): Definition => ({ uid: "1", resourceVersion: "1", ours, deleting: false, config: "{}" });

test("definitions count where one is wanted, so that one too many elsewhere does not hide one that lacks", () => {
  const namespaces = [
    namespace("linkerd"),
    namespace("shop", "enabled"),
    namespace("lacking", "enabled"),
    namespace("contested", "enabled"),
    namespace("left", "disabled"),
    namespace("ending", "enabled", true),
    namespace("other"),
  ];
  const found: Readonly<Record<string, Definition>> = {
    linkerd: owned(true),
    shop: owned(true),
    contested: owned(false),
    left: owned(true),
    ending: owned(true),
    other: owned(false),
  };
  const definition = (name: string) => found[name];
  const counts = countDefinitions({ namespaces, definition, linkerdNamespace: "linkerd" });
  expect(counts).toEqual({ ours: 2, foreign: 1, wanted: 4 });
});
