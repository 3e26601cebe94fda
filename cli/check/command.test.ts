import { CHAINED_NOTE } from "../../cni/contract";
import { runIn } from "../io.testing";

const refused = { code: 1, out: "", err: "The connection to the server was refused\n" };

test.each(["5 minutes", "m", "-1", "1s2"])("--wait %s is refused", async (text) => {
  const { code, err } = await runIn({}, ["check", `--wait=${text}`]);
  expect([code, err]).toEqual([1, expect.stringContaining("Write seconds, or a duration such as 1m30s")]);
});

test.each([
  ["0", 1],
  ["10", 6],
  ["10s", 6],
  ["1m1s", 32],
])("--wait %s looks every two seconds until the time is over", async (wait, looks) => {
  let asked = 0;
  const kubectl = () => {
    asked++;
    return refused;
  };
  const { code, out, err } = await runIn({ programs: { kubectl } }, ["check", "--wait", wait]);
  expect([code, err, asked]).toEqual([1, "", looks]);
  expect(out).toContain("kubectl get: The connection to the server was refused");
});

test.each(["<html>login</html>", "null"])("a server that answers %s is not an API server", async (out) => {
  const kubectl = () => ({ code: 0, out, err: "" });
  const ended = await runIn({ programs: { kubectl } }, ["check", "--output=json"]);
  expect([ended.code, ended.err]).toEqual([1, ""]);
  const [{ checks }] = JSON.parse(ended.out).categories;
  expect(checks).toMatchObject([
    { result: "error", error: expect.stringContaining(`${JSON.stringify(out)} is not a version`) },
  ]);
});

/** A cluster with one pod of the DaemonSet, whose log is given. */
function withLog(lines: readonly string[], status: object = {}) {
  const owner = [{ uid: "1" }];
  const set = { metadata: { name: "linkerd-cni", namespace: "linkerd-cni", uid: "1" }, status: {} };
  const pod = { metadata: { name: "linkerd-cni-a", ownerReferences: owner }, spec: { nodeName: "a" }, status };
  return (args: readonly string[]) => {
    const [verb, kind, name] = args.filter((word) => !word.startsWith("-"));
    if (verb === "logs") return { code: 0, out: `${lines.join("\n")}\n`, err: "" };
    if (kind === "daemonset" && name === "linkerd-cni") return { code: 0, out: JSON.stringify(set), err: "" };
    const items = kind === "pods" ? [pod] : [];
    return { code: 0, out: name === undefined ? JSON.stringify({ items }) : "", err: "" };
  };
}

test.each([
  [["info: plugin: verb=ADD", "error: no valid CNI configuration", "info: chained"], "no valid CNI configuration"],
  [["error: no valid CNI configuration", "warn: changed back by calico"], "no valid CNI configuration"],
  [["error: no valid CNI configuration", "error: plugin: verb=ADD code=7"], "no valid CNI configuration"],
  [["warn: changed back by calico", "error: plugin: verb=ADD code=7"], "changed back by calico"],
])("the installer's problem is reported from a log with %j", async (lines, told) => {
  const kubectl = withLog(lines.map((line) => `linkerd-cni: ${line}`));
  const { out } = await runIn({ programs: { kubectl } }, ["check"]);
  expect(out).toContain(`pod linkerd-cni-a is not ready: it says: ${told}\n`);
});

test("linkerd's image under a mirror's name is recognized by what its plugin prints", async () => {
  const printed = ["{", '    "code": 4,', '    "msg": "required env variables [CNI_COMMAND] missing"', "}"];
  const state = { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s restarting failed container" } };
  const kubectl = withLog(printed, { containerStatuses: [{ name: "install-cni", image: "mirror/cni:1", state }] });
  const { out } = await runIn({ programs: { kubectl } }, ["check"]);
  expect(out).toContain("image mirror/cni:1 is not this project's");
});

test("how a ready installer has chained the pods is read from its log", async () => {
  const lines = [
    `linkerd-cni: info: /n/10-k.conflist ends in our stanza: ${CHAINED_NOTE} (edit: the node's runtime is not known yet)`,
    `linkerd-cni: info: /n/k/99-linkerd-cni.conf holds our stanza: ${CHAINED_NOTE} (dropin: containerd://2.2.9 reads drop-ins)`,
    "linkerd-cni: info: another line",
  ];
  const kubectl = withLog(lines, { conditions: [{ type: "Ready", status: "True" }] });
  const { out } = await runIn({ programs: { kubectl } }, ["check"]);
  expect(out).toContain("pods are chained by a drop-in beside the node's CNI configuration");
  expect(out).toContain("a: containerd://2.2.9 reads drop-ins\n");
});

test("control characters of Events, logs and kubectl's errors do not reach the terminal", async () => {
  const evil = "\u001b]0;title\u0007\u001b[2K\r\u009b31mred";
  const own = withLog([`linkerd-cni: error: ${evil}`]);
  const event = { message: evil, lastTimestamp: "2026-01-01T00:00:00Z" };
  const kubectl = (args: readonly string[]) => {
    if (args.includes("configmap")) return { code: 1, out: "", err: evil };
    return args.includes("events") ? { code: 0, out: JSON.stringify({ items: [event] }), err: "" } : own(args);
  };
  const { out } = await runIn({ programs: { kubectl } }, ["check"]);
  expect(out.split("]0;title[2K31mred").length).toBeGreaterThan(2);
  expect(out.match(/[^\P{Cc}\n]/gu)).toBeNull();
});

test("flags for the cluster are kubectl's own", async () => {
  const given: (readonly string[])[] = [];
  const kubectl = (args: readonly string[]) => {
    given.push(args);
    return refused;
  };
  await runIn({ programs: { kubectl } }, ["check", "--context=c", "--kubeconfig", "k"]);
  expect(given).toEqual([["--context=c", "--kubeconfig=k", "--request-timeout=20s", "get", "--raw", "/version"]]);
});
