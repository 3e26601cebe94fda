import fc from "fast-check";
import { parse } from "yaml";
import {
  cluster,
  configured,
  daemonSet,
  NAMESPACE,
  node,
  onTwo,
  pod,
  READY,
  rolledOut,
  unready,
} from "../check/cluster.testing";
import type { CheckedPod, Event } from "../check/objects";
import type { Read, Snapshot } from "../check/snapshot";
import type { Ended } from "../io";
import { type CliRun, runIn, type World } from "../io.testing";
import { unpacked } from "./archive.testing";
import { seeded, word } from "./secrets.testing";

const FORBIDDEN = "Error from server (Forbidden): it is forbidden";

interface Answers {
  /** By pod and container; of the run before with `.previous` behind. */
  readonly logs?: Readonly<Record<string, string>>;
  readonly events?: readonly Event[];
}

/** kubectl, in front of a cluster of the checks' tests. */
function kubectl(snapshot: Snapshot, { logs = {}, events = [] }: Answers = {}) {
  const said = (out: unknown): Ended => ({
    code: 0,
    out: typeof out === "string" ? out : JSON.stringify(out),
    err: "",
  });
  const one = (read: Read<unknown>) =>
    "problem" in read ? { code: 1, out: "", err: read.problem } : said(read.value ?? "");
  const all = (read: Read<readonly unknown[] | undefined>) =>
    "problem" in read ? { code: 1, out: "", err: read.problem } : said({ items: read.value ?? [] });
  return (args: readonly string[]): Ended => {
    const [verb, kind = "", name] = args.filter((word) => !word.startsWith("--"));
    const has = (flag: string) => args.some((word) => word.includes(flag));
    if (verb === "version") return said({ serverVersion: { gitVersion: "v1.31.4" } });
    if (verb === "logs") {
      const container = args.find((word) => word.startsWith("--container="))?.slice("--container=".length);
      const log = logs[`${kind}.${container}${has("--previous") ? ".previous" : ""}`];
      return log === undefined ? { code: 1, out: "", err: FORBIDDEN } : said(log);
    }
    if (kind === "/version") return said({ gitVersion: "v1.31.4" });
    switch (kind) {
      case "daemonset":
        return one(has("linkerd-cni-nri") ? snapshot.nri : snapshot.daemonSet);
      case "daemonsets":
        return all(snapshot.daemonSets);
      case "configmap":
        return one(snapshot.configMap);
      case "namespace":
        return one(snapshot.namespaceObject);
      case "nodes":
        return all(snapshot.nodes);
      case "pods":
        return all(has("status.phase=Pending") ? snapshot.pending : snapshot.pods);
      case "events":
        if (has("FailedCreatePodSandBox")) return all(snapshot.sandboxFailures);
        if (has("FailedCreate")) return all(snapshot.refusals);
        return said({ items: has("involvedObject.name=") ? [] : events });
      default: {
        const grant = snapshot.grants.find(({ wanted }) => {
          const plural = `${wanted.kind.toLowerCase()}s`;
          return (kind.startsWith(`${plural}.`) || `${kind}s` === plural) && wanted.metadata.name === name;
        });
        if (grant !== undefined) return one(grant.found);
        return said(name === undefined ? { items: [] } : "");
      }
    }
  };
}

interface Report extends CliRun {
  readonly files: ReadonlyMap<string, string>;
  /** Everything in the archive. */
  readonly text: string;
}

async function report(snapshot: Snapshot, answers: Answers = {}, args: readonly string[] = []): Promise<Report> {
  const ended = await runIn({ programs: { kubectl: kubectl(snapshot, answers) } }, ["report", ...args]);
  const [archive] = ended.written.values();
  if (archive === undefined) throw new Error(`no archive: ${ended.err}`);
  const files = await unpacked(archive);
  return { ...ended, files, text: [...files.entries()].flat().join("\n") };
}

const running = { name: "install-cni", ready: true, state: { running: {} } };
const ran = (on: string, containerStatuses: readonly object[] = [running]) =>
  pod(on, { conditions: READY, containerStatuses: containerStatuses as never });

const broken = cluster({
  ...onTwo({ conditions: unready, containerStatuses: [{ ...running, ready: false }] }),
  ...rolledOut({ numberReady: 1 }),
});
const brokenLogs = {
  "linkerd-cni-two.install-cni": "linkerd-cni: error: no valid CNI configuration in /etc/cni/net.d yet\n",
};

test("the archive of a broken installation names the cause", async () => {
  const { code, out, err, files, written } = await report(broken, { logs: brokenLogs });
  expect([code, err]).toEqual([0, ""]);
  const cause = "pod linkerd-cni-two is not ready: it says: no valid CNI configuration in /etc/cni/net.d yet";
  expect(files.get("check.txt")).toContain(`× node two has a ready pod\n    ${cause}`);
  expect(files.get("pods/linkerd-cni-two.install-cni.log")).toBe(brokenLogs["linkerd-cni-two.install-cni"]);
  expect([...written.keys()]).toEqual(["linkerd-cni-report-19700101-000000.tar.gz"]);
  for (const name of files.keys()) if (name !== "README.txt") expect(out).toContain(name);
});

test("holds versions, configuration, nodes, states and logs of both runs", async () => {
  const restarted = { ...running, restartCount: 2, imageID: "registry/cni@sha256:0123" };
  const info = { kernelVersion: "6.8.0", containerRuntimeVersion: "containerd://1.7.23", kubeletVersion: "v1.31.4" };
  const snapshot = cluster({
    pods: { value: [ran("one", [restarted]), ran("two")] },
    nodes: { value: [node("one", { status: { nodeInfo: info } }), node("two")] },
  });
  const logs = {
    "linkerd-cni-one.install-cni": "now\n",
    "linkerd-cni-one.install-cni.previous": "before\n",
    "linkerd-cni-two.install-cni":
      'linkerd-cni: error: plugin: verb=ADD pod=shop/cart code=11 error=no answer\n{"time":"","level":"error","message":"plugin: verb=DEL"}\nlinkerd-cni: info: plugin: verb=ADD\n',
  };
  const events = [{ reason: "Pulled", message: "it is here", lastTimestamp: "2026-01-02T03:04:05Z" }];
  const { files } = await report(snapshot, { logs, events });
  expect(parse(files.get("versions.yaml") ?? "")).toMatchObject({
    imageIDs: ["registry/cni@sha256:0123"],
    kubernetes: { serverVersion: { gitVersion: "v1.31.4" } },
    nodes: [expect.stringContaining("v1.31.4, containerd://1.7.23, 6.8.0"), expect.any(String)],
  });
  expect(parse(files.get("daemonset.yaml") ?? "")).toMatchObject({ metadata: { name: "linkerd-cni" } });
  expect(files.get("configmap.yaml")).toContain('"incoming-proxy-port": 4143');
  expect(parse(files.get("nodes.yaml") ?? "")[0]).toMatchObject({
    name: "one",
    installer: ["linkerd-cni-one: ready"],
    kernelVersion: "6.8.0",
  });
  expect(files.get("pods/linkerd-cni-one.install-cni.log")).toBe("now\n");
  expect(files.get("pods/linkerd-cni-one.install-cni.previous.log")).toBe("before\n");
  expect(files.get("events.txt")).toMatch(/^2026-01-02T03:04:05Z .*Pulled.*: it is here\n$/);
  expect(files.get("unread.txt")).toBe("none\n");
  for (const name of files.keys()) if (name !== "README.txt") expect(files.get("README.txt")).toContain(`${name} `);
});

test("the chart's variables are kept, all others are removed", async () => {
  const text = JSON.stringify(daemonSet()).replace('"env":[', '"env":[{"name":"COLOUR","value":"hunter2"},');
  const { files } = await report(cluster({ daemonSet: { value: JSON.parse(text) } }));
  expect(files.get("daemonset.yaml")).toMatch(/name: COLOUR\n +value: "?\[redacted\]/);
  expect(files.get("daemonset.yaml")).toMatch(/name: HEALTH_PORT\n +value: "\d+"/);
  expect(files.get("daemonset.yaml")).not.toContain("hunter2");
});

/** Pods of other namespaces: one that waits for the plugin, and one that only the log knows. */
const waiting: CheckedPod = {
  metadata: { name: "cart-7d9f", namespace: "shop", uid: "u" },
  spec: { nodeName: "ip-10-0-0-7.ec2.internal" },
  status: { conditions: [] },
};
const failure = {
  message: 'plugin type="linkerd-cni" failed (add): linkerd-cni: code 11: 401',
  involvedObject: { uid: "u", kind: "Pod", namespace: "shop", name: "cart-7d9f" },
} as Event;
const named = cluster({
  pods: { value: [ran("one"), { ...pod("two"), spec: { nodeName: "ip-10-0-0-7.ec2.internal" } }] },
  nodes: { value: [node("one"), node("ip-10-0-0-7.ec2.internal")] },
  pending: { value: [waiting] },
  sandboxFailures: { value: [failure] },
});
const gone =
  "linkerd-cni: info: plugin: verb=ADD pod=bank/ledger-1 reason=cart-7d9f.shop.svc, not orders, on ip-10-0-0-7\n";
const answers: Answers = { logs: { "linkerd-cni-one.install-cni": gone } };

test("names of nodes, namespaces and pods stay, so that a path or a key is never changed", async () => {
  const { files } = await report(named, answers);
  expect(parse(files.get("named-pods.yaml") ?? "")).toMatchObject([
    { pod: "shop/cart-7d9f", node: "ip-10-0-0-7.ec2.internal" },
  ]);
  expect(files.get("pods/linkerd-cni-one.install-cni.log")).toBe(gone);
  expect(files.get("check.txt")).toContain("shop/cart-7d9f cannot start");
  expect(files.get("README.txt")).toContain("Read it before you attach it.");
});

test("ids of the machine are left out", async () => {
  const ids = { machineID: "3d1219c7c4c5404a", systemUUID: "ec2a6f1d-0b54", bootID: "a1b94df2-b2e2" };
  const status = { nodeInfo: { kernelVersion: "6.1.0", ...ids } };
  const { files, text } = await report(cluster({ nodes: { value: [node("one", { status })] } }));
  expect(files.get("nodes.yaml")).toContain("kernelVersion: 6.1.0");
  for (const id of Object.values(ids)) expect(text).not.toContain(id);
});

test("unreadable parts are listed, and are not a failure", async () => {
  const snapshot = cluster({ nodes: { problem: FORBIDDEN }, pods: { value: [ran("one")] } });
  const { code, out, files } = await report(snapshot);
  expect(code).toBe(0);
  expect(files.get("unread.txt")).toMatch(/^nodes: kubectl get: Error from server \(Forbidden\)/m);
  expect(files.get("unread.txt")).toMatch(/^log of pod linkerd-cni-one, container install-cni: kubectl logs: /m);
  expect(out).toContain("2 things could not be read: see unread.txt");
});

test("without a cluster there is no archive", async () => {
  const refused = () => ({ code: 1, out: "", err: "The connection to the server was refused\n" });
  const { code, err, out, written } = await runIn({ programs: { kubectl: refused } }, ["report"]);
  const problem = "kubectl get: The connection to the server was refused";
  expect([code, err, out]).toEqual([1, `l5d-cni: no report, since nothing can be read: ${problem}\n`, ""]);
  expect([...written.keys()]).toEqual([]);
});

test("a user who may read nothing gets no archive", async () => {
  const kubectl = (args: readonly string[]) =>
    args.includes("/version") ? { code: 0, out: "{}", err: "" } : { code: 1, out: "", err: FORBIDDEN };
  const { code, err, written } = await runIn({ programs: { kubectl } }, ["report"]);
  expect([code, err]).toEqual([
    1,
    expect.stringContaining("nothing can be read: kubectl get: Error from server (Forb"),
  ]);
  expect([...written.keys()]).toEqual([]);
});

test("--logs limits the pods whose logs are read, unready ones first", async () => {
  const { files } = await report(
    cluster({ pods: { value: [ran("one"), pod("two", { conditions: unready, containerStatuses: [running] })] } }),
    { logs: brokenLogs },
    ["--logs=1"],
  );
  expect([...files.keys()].filter((name) => name.endsWith(".log"))).toEqual(["pods/linkerd-cni-two.install-cni.log"]);
  expect(files.get("unread.txt")).toContain("logs of 1 more pods: logs of 1 pods are read: --logs 2 reads all");
});

const running1 = (files: World["files"]): World => ({ programs: { kubectl: kubectl(cluster()) }, files: files ?? {} });

test("an existing file is not overwritten", async () => {
  const { code, err, written } = await runIn(running1({ "a.tar.gz": "" }), ["report", "-o", "a.tar.gz"]);
  expect([code, err]).toEqual([1, "l5d-cni: --output: a.tar.gz already exists: choose another name\n"]);
  expect(written.size).toBe(0);
});

test("standard output gets only the archive", async () => {
  const { code, out, err, written } = await runIn(running1({}), ["report", "-o", "-"]);
  expect([code, out]).toEqual([0, ""]);
  expect(err).toContain("check.txt");
  expect((await unpacked(written.get("-") as Buffer)).has("daemonset.yaml")).toBe(true);
});

test("no secret survives in an archive, wherever it was", async () => {
  await fc.assert(
    fc.asyncProperty(seeded, word, async ({ text, secrets }, plain) => {
      const where = { metadata: { name: "linkerd-cni-config", namespace: NAMESPACE } };
      const made = daemonSet();
      const annotations = {
        "example.com/note": text,
        "kubectl.kubernetes.io/last-applied-configuration": text,
      };
      const env = [
        { name: "COLOUR", value: plain },
        { name: "DB_PASSWORD", value: plain },
      ];
      const [container] = made.spec?.template?.spec?.containers ?? [];
      const containers = [{ ...container, env: [...(container?.env ?? []), ...env] }];
      const template = { spec: { ...made.spec?.template?.spec, containers } };
      const set = { ...made, metadata: { ...made.metadata, annotations }, spec: { ...made.spec, template } };
      const stopped = { reason: "Error", message: text, exitCode: 1 };
      const statuses = [{ name: "install-cni", state: { waiting: stopped }, lastState: { terminated: stopped } }];
      const snapshot = cluster({
        daemonSet: { value: set as never },
        configMap: { value: { ...where, data: { cni_network_config: text } } },
        pods: { value: [pod("one", { conditions: unready, containerStatuses: statuses }, { annotations })] },
        pending: { value: [{ ...waiting, metadata: { ...waiting.metadata, annotations: { "linkerd.io/a": text } } }] },
        sandboxFailures: { value: [{ ...failure, message: `${failure.message}: ${text}` }] },
        refusals: { problem: text },
      });
      const logs = {
        "linkerd-cni-one.install-cni": `linkerd-cni: error: plugin: ${text}\n${text}\n`,
        "linkerd-cni-one.install-cni.previous": `linkerd-cni: error: ${text}\n`,
      };
      const events = [{ reason: "Failed", message: text }];
      const { text: all } = await report(snapshot, { logs, events });
      for (const secret of [...secrets, plain].filter(({ length }) => length >= 8)) expect(all).not.toContain(secret);
    }),
    { numRuns: 8 },
  );
});

test("other texts stay", async () => {
  const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const log = [
    `linkerd-cni: info: image registry/linkerd-cni@${digest}`,
    "linkerd-cni: warn: 403 for pods/linkerd-cni-one of linkerd-cni/linkerd-cni: its token is not shown",
    "linkerd-cni: error: /var/lib/rancher/k3s/agent/etc/cni/net.d/10-flannel.conflist is not valid JSON",
    "linkerd-cni: info: /var/run/secrets/kubernetes.io/serviceaccount/token has changed",
    "",
  ].join("\n");
  const { files } = await report(cluster({ ...configured((each) => each), pods: { value: [ran("one")] } }), {
    logs: { "linkerd-cni-one.install-cni": log },
  });
  expect(files.get("pods/linkerd-cni-one.install-cni.log")).toBe(log);
  expect(files.get("configmap.yaml")).not.toContain("[redacted]");
  expect(files.get("daemonset.yaml")).not.toContain("[redacted]");
});
