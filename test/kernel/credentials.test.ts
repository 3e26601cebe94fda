/** No file that an installation writes on the node holds a credential, in any setting. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { ApiStub, json } from "../support/api-server";
import { LINKERDS_STANZA } from "../support/linkerd-stanza";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const MULTUS =
  '{"cniVersion":"1.0.0","name":"m","type":"multus-shim","auxiliaryCNIChainName":"vendor","clusterNetwork":"/net.d/10-k.conflist"}\n';
const POD = "/api/v1/namespaces/linkerd-cni/pods/linkerd-cni-x7k2p";
const TOKEN = "/api/v1/namespaces/linkerd-cni/serviceaccounts/linkerd-cni/token";

/** A token as the API server issues them; the signature does not matter here. */
function jwt(signature: string): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "system:serviceaccount:linkerd-cni:linkerd-cni", iat: now, exp: now + 3600 };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${signature}`;
}
const [OWN, UNBOUND] = [jwt("own-signature"), jwt("unbound-signature")];
const SECRETS = [OWN, UNBOUND, "own-signature", "unbound-signature"];

/** linkerd's placeholders for the token, in a ConfigMap of its chart. */
const LINKERDS = JSON.stringify({
  ...LINKERDS_STANZA,
  policy: { type: "k8s", k8s_auth_token: "__SERVICEACCOUNT_TOKEN__" },
});

const settings: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ["an edit", {}, "10-k.conflist"],
  ["a drop-in", { CHAINING: "dropin" }, "k/99-linkerd-cni.conf"],
  ["Multus' auxiliary chain", { CHAINING: "auxiliary" }, "../vendor/99-linkerd-cni.conf"],
  ["Multus' definitions", { CHAINED: "false" }, "linkerd-cni.journal"],
  ["NRI without a chain", { CHAINED: "false", NRI_EVENTS: "true" }, "linkerd-cni.journal"],
  ["linkerd's ConfigMap", { CNI_NETWORK_CONFIG: LINKERDS }, "10-k.conflist"],
  ["another name of the kubeconfig", { KUBECONFIG_FILE_NAME: "ZZZ-other" }, "10-k.conflist"],
  ["debugging", { LOG_LEVEL: "debug", SHOW_PLUGIN_LOG: "false" }, "10-k.conflist"],
];

suite("an installation", missing({ root: true, programs: ["unshare", "mount"] }), () => {
  let api: ApiStub;
  let node: TestNode;
  let installer: Installer;

  beforeAll(buildPrograms);
  beforeEach(async () => {
    api = await ApiStub.start((request, response) => {
      const [path = ""] = request.url?.split("?") ?? [];
      if (path === TOKEN) return json(201, { status: { token: UNBOUND } })(request, response);
      json(path === POD ? 200 : 404, {})(request, response);
    });
    node = new TestNode({ "10-k.conflist": LIST });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    writeFileSync(join(node.accountDir, "token"), OWN);
  });
  afterEach(async () => {
    await installer.stop("SIGKILL");
    api.close();
    node.delete();
  });

  /** The files that the node would have, with their content. */
  function files(): ReadonlyMap<string, string> {
    const found = ["net.d", "bin", "run", "vendor"].flatMap((directory) =>
      readdirSync(join(node.root, directory), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    );
    const text = (path: string) => {
      try {
        return readFileSync(path, "latin1");
      } catch {
        return ""; // a temporary file that has gone
      }
    };
    return new Map(found.map((path) => [path.slice(node.root.length + 1), text(path)]));
  }

  /** Looks a pod up as the plugin does. */
  const lookUp = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(join(node.root, "run", LOOKUP_SOCKET_NAME), () =>
        socket.end(`GET ${POD} HTTP/1.1\r\nhost: localhost\r\n\r\n`),
      );
      socket.on("data", () => undefined);
      socket.on("error", reject).on("close", () => resolve());
    });

  test.each(settings)("leaves no credential on the node: %s", async (_, environment, written) => {
    if (environment["CHAINING"] === "auxiliary") node.write("00-multus.conf", MULTUS);
    for (const name of ["run", "vendor"]) mkdirSync(join(node.root, name));
    const reading = node.readAsRuntime();
    installer = node.startMounted({
      KUBERNETES_SERVICE_PORT: String(api.port),
      POD_NAMESPACE: "linkerd-cni",
      POD_NAME: "linkerd-cni-x7k2p",
      UNINSTALL_ON_STOP: "never",
      ...environment,
    });
    try {
      // It is written last.
      await installer.says("directories.json");
      expect(node.read(written)).toContain("linkerd-cni");
      await until("the other token", async () => api.requests.includes(TOKEN));
      await until("lookups", async () => existsSync(join(node.root, "run", LOOKUP_SOCKET_NAME)));
      await lookUp();
      for (const signal of [undefined, "SIGTERM"] as const) {
        if (signal !== undefined) await installer.stop(signal);
        const content = files();
        expect(content.has(join("bin", "linkerd-cni"))).toBe(true);
        const found = [...content].filter(
          ([, text]) =>
            SECRETS.some((secret) => text.includes(secret)) || /\bey[\w-]+\.ey[\w-]+\.|PRIVATE KEY/.test(text),
        );
        expect(found.map(([path]) => path)).toEqual([]);
        expect([...content.keys()].filter((path) => /kubeconfig|ZZZ/i.test(path))).toEqual([]);
      }
      for (const secret of SECRETS) expect(installer.log).not.toContain(secret);
    } finally {
      reading.close();
    }
  });
});
