import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { loadKubeconfig } from "./kubeconfig";
import { kubeconfigSource as source } from "./kubeconfig.testing";

const golden = join(__dirname, "goldens", "kubeconfig.json");
const document = JSON.parse(readFileSync(golden, "utf8"));
const wanted = { host: "fd00::1", port: 6443, ca: "CA", token: "secret" };

describe("a kubeconfig", () => {
  const directory = mkdtempSync(join(tmpdir(), "kubeconfig-"));
  afterAll(() => rmSync(directory, { recursive: true }));

  function load(content: string) {
    const path = join(directory, "config");
    writeFileSync(path, content);
    return loadKubeconfig(path, source);
  }

  it("is read as JSON and as YAML", () => {
    expect(loadKubeconfig(golden, source)).toEqual(wanted);
    expect(load(stringify(document))).toEqual(wanted);
  });

  it("needs no current context if it has only one context", () => {
    const { "current-context": _, ...others } = document;
    expect(load(JSON.stringify(others))).toEqual(wanted);
    const two = { ...others, contexts: [...others.contexts, { name: "b", context: {} }] };
    expect(() => load(JSON.stringify(two))).toThrow("current-context is missing, and contexts does not have exactly");
  });

  it("may refer to files beside it", () => {
    writeFileSync(join(directory, "token"), "fresh\n");
    writeFileSync(join(directory, "ca.crt"), "OTHER");
    const cluster = { server: "https://api.example", "certificate-authority": "ca.crt", "tls-server-name": "api" };
    const found = load(
      JSON.stringify({
        ...document,
        clusters: [{ name: "local", cluster }],
        users: [{ name: "linkerd-cni", user: { tokenFile: "token" } }],
      }),
    );
    expect(found).toEqual({ host: "api.example", port: 443, ca: "OTHER", token: "fresh", serverName: "api" });
  });

  it.each([
    [
      "a missing context",
      { ...document, "current-context": "x" },
      /contexts has no entry with the name in current-context$/,
    ],
    [
      "no clusters",
      { ...document, clusters: undefined },
      /clusters has no entry with the name in the context's cluster$/,
    ],
    [
      "a server without TLS",
      { ...document, clusters: [{ name: "local", cluster: { server: "http://a" } }] },
      /server is not https:/,
    ],
    [
      "a token that is not a text",
      { ...document, users: [{ name: "linkerd-cni", user: { token: 1 } }] },
      /token is not/,
    ],
  ])("is refused for %s", (_, content, message) => {
    expect(() => load(JSON.stringify(content))).toThrow(message);
    expect(() => load(JSON.stringify(content))).toThrow(join(directory, "config"));
  });

  it("is refused if it is missing or neither JSON nor YAML", () => {
    expect(() => loadKubeconfig(join(directory, "none"), source)).toThrow(/none cannot be read/);
    expect(() => load("a: [")).toThrow(/neither JSON nor YAML \(line 1, column 5\)$/);
  });
});
