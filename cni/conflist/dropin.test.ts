import { dropinFolder, whyNoDropins } from "./dropin";
import { readConfig } from "./read";

const config = (text: string, file = "10-k.conflist") => readConfig(file, Buffer.from(text));
const plugins = '"plugins":[{"type":"bridge"}]';

test("the folder has the network's name", () => {
  expect(dropinFolder(config(`{"name":"k8s-pod-network",${plugins}}`))).toBe("k8s-pod-network");
  expect(dropinFolder(config(`{"name":"k","loadOnlyInlinedPlugins":false,${plugins}}`))).toBe("k");
});

test.each([
  [
    "a list with its own plugins alone",
    `{"name":"k","loadOnlyInlinedPlugins":true,${plugins}}`,
    "loadOnlyInlinedPlugins",
  ],
  ["the same as a text", `{"name":"k","loadOnlyInlinedPlugins":"True",${plugins}}`, "loadOnlyInlinedPlugins"],
  ["the directory itself", `{"name":".",${plugins}}`, "name"],
  ["a directory above", `{"name":"..",${plugins}}`, "name"],
  ["a path", `{"name":"../../tmp/k",${plugins}}`, "name"],
  ["a path below", `{"name":"k/l",${plugins}}`, "name"],
  ["a name with a line's end", `{"name":"k\\n",${plugins}}`, "name"],
])("%s has no folder", (_, text, why) => {
  expect(dropinFolder(config(text))).toBeUndefined();
  expect(whyNoDropins(config(text))).toContain(why);
});

test("a single plugin's file has no folder", () => {
  expect(dropinFolder(config('{"name":"k","type":"bridge"}', "10-k.conf"))).toBeUndefined();
});
