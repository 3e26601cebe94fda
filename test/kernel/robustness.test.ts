/** The built plugin when things go wrong around it. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { config, environment, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing, type Ran } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");
const traced = hasProgram("strace", "-V") ? it : it.skip;

const meshed = json(200, {
  kind: "Pod",
  metadata: { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector x" } },
  spec: { containers: [{ name: "linkerd-proxy" }] },
});
const annotations = { "linkerd.io/proxy-version": "x", "linkerd.io/created-by": "linkerd/proxy-injector x" };
const alone = {
  ...config,
  "pod-lookup": "annotations",
  runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations },
  linkerd: { ipv6: true },
};

suite("robustness", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let pod: string;

  beforeAll(async () => {
    api = await ApiStub.start(meshed);
    plugin = await PluginNode.open(api);
  });
  beforeEach(async () => {
    api.answer = meshed;
    pod = await plugin.node.pod();
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  const rules = (netns: string) => plugin.node.within(netns, "nft", ["list", "ruleset"]);

  /** Runs the plugin from a shell, in a mount namespace of its own. */
  function viaShell(script: string, stdin: object = config): Promise<Ran> {
    const env = { PATH: process.env["PATH"] ?? "", ...environment, CNI_NETNS: pod };
    const input = plugin.input(JSON.stringify(stdin));
    return plugin.node.run("unshare", ["-m", "sh", "-c", script, plugin.executable], { env, input });
  }

  it("a pod that ends during the lookup costs no other its namespace: the one that was checked is entered", async () => {
    const doomed = new AbortController();
    api.answer = async (request, response) => {
      process.kill(Number(pod.split("/")[2]), "SIGKILL");
      doomed.abort();
      await until("its end", () => !existsSync(pod));
      meshed(request, response);
    };
    const { document, status } = await plugin.call(plugin.environment(pod), config);
    expect(doomed.signal.aborted).toBe(true);
    // Its namespace lives as long as the plugin has it open, whatever stands at its path by now.
    expect(existsSync(pod)).toBe(false);
    expect({ status, document }).toMatchObject({ status: 0, document: { ips: config.prevResult.ips } });
  });

  it("a read-only file system changes nothing", async () => {
    const { stdout, status } = await viaShell('mount -o remount,bind,ro / && exec "$0"');
    expect([status, JSON.parse(stdout)]).toEqual([0, prevResult]);
  });

  it("closed descriptors do not cause a crash", async () => {
    const { stdout, status } = await viaShell('exec "$0" <&-');
    expect(JSON.parse(stdout)).toMatchObject({ code: expect.any(Number) });
    expect(status).toBe(1);
    expect((await viaShell('exec "$0" >&-')).status).not.toBeNull();
    expect((await viaShell('exec "$0" 2>&-')).status).toBe(0);
  });

  /** The same with the usual directory of the socket, empty but for it. */
  const inRunDir = (script: string) => {
    const socket = "/run/linkerd-cni/lookup.sock";
    const made = `mount -t tmpfs none /run && mkdir /run/linkerd-cni && touch ${socket}`;
    return viaShell(`${made} && mount --bind ${api.runDir}/lookup.sock ${socket} && ${script}`, {
      ...config,
      "run-dir": undefined,
    });
  };

  it("each call is recorded if the installer created the directory", async () => {
    const { stdout } = await inRunDir('"$0" >/dev/null && cat /run/linkerd-cni/plugin.log');
    const record = JSON.parse(stdout);
    expect(record).toMatchObject({
      verb: "ADD",
      pod: "shop/cart-1",
      decision: "redirect",
      mode: "native",
      requests: 1,
    });
    expect(Object.keys(record)).toEqual(expect.arrayContaining(["time", "lookupMs", "rulesMs", "ms"]));
  });

  it("calls are recorded until the log is full, if no installer renames it", async () => {
    const log = "/run/linkerd-cni/plugin.log";
    const call = '"$0" </run/stdin >/dev/null';
    const script = `cat >/run/stdin && head -c 8388607 /dev/zero >${log} && ${call} && ${call} && wc -l ${log}`;
    expect((await inRunDir(script)).stdout.match(/\d+ \/run\S+/g)).toEqual([`1 ${log}`]);
  });

  it("a record that cannot be written fails nothing", async () => {
    const { stdout, status } = await inRunDir('mkdir /run/linkerd-cni/plugin.log && exec "$0"');
    expect([status, JSON.parse(stdout)]).toEqual([0, prevResult]);
  });

  it("takes as many rules at once as may be asked for", async () => {
    const many = Array.from({ length: 1000 }, (_, index) => 1 + 2 * index);
    const stanza = { ...config, linkerd: { ipv6: true, "ports-to-redirect": many } };
    const { status, stdout } = await plugin.call(plugin.environment(pod), stanza);
    expect([status, status === 0 ? "" : stdout]).toEqual([0, ""]);
    expect(rules(pod).match(/redirect to :4143/g)).toHaveLength(2000);
    const checked = await plugin.call(plugin.environment(pod, { CNI_COMMAND: "CHECK" }), stanza);
    expect([checked.status, checked.stdout]).toEqual([0, ""]);
  });

  it("takes as many in a user namespace, where no room for them can be forced", async () => {
    const many = Array.from({ length: 1000 }, (_, index) => 1 + 2 * index);
    const stanza = { ...alone, linkerd: { ipv6: true, "ports-to-redirect": many } };
    const script = `
      unshare -n sleep 60 <&- >&- 2>&- & holder=$!
      until [ "$(readlink /proc/$holder/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
      CNI_NETNS=/proc/$holder/ns/net "$0" && nsenter -t $holder -n nft list ruleset | grep -c "redirect to :4143"
      kill $holder`;
    const env = { PATH: process.env["PATH"] ?? "", ...environment };
    const options = { env, input: JSON.stringify(stanza) };
    const { stdout } = await plugin.node.run("unshare", ["-Urn", "sh", "-c", script, plugin.executable], options);
    expect(stdout).toBe(`${JSON.stringify(prevResult)}\n2000\n`);
  });

  it("removes IPv6 rules if an ADD no longer requests them", async () => {
    await plugin.call(plugin.environment(pod), { ...config, linkerd: { ipv6: true } });
    expect(rules(pod)).toContain("table ip6 linkerd-cni");
    expect((await plugin.call(plugin.environment(pod), config)).status).toBe(0);
    expect(rules(pod)).not.toContain("table ip6 linkerd-cni");
  });

  it.each(["nft", "legacy"])("forgets it in mode %s, too", async (mode) => {
    const saved = (program: string) => plugin.node.within(pod, `${program}-${mode}-save`, ["-t", "nat"]);
    for (const ipv6 of [true, false, false]) {
      const { status } = await viaShell('exec "$0"', { ...alone, linkerd: { ipv6, "iptables-mode": mode } });
      expect([status, saved("iptables").includes("PROXY_INIT")]).toEqual([0, true]);
      expect(saved("ip6tables").includes("PROXY_INIT")).toBe(ipv6);
    }
  });

  it("sets no rules if those of one family are refused", async () => {
    // A table that another process owns cannot be replaced.
    const script = `
      nft="nsenter --net=$CNI_NETNS nft"; pipe=$(mktemp -u); mkfifo $pipe
      $nft -i <$pipe >/dev/null 2>&1 &
      exec 3>$pipe; rm $pipe; echo "add table ip6 linkerd-cni { flags owner; }" >&3
      until $nft list tables | grep -q ip6; do sleep 0.05; done
      "$0"`;
    const { stdout, status } = await viaShell(script, alone);
    expect([status, JSON.parse(stdout)]).toMatchObject([1, { code: 101, msg: expect.stringContaining("EPERM") }]);
    expect(rules(pod)).not.toContain("table ip linkerd-cni");
  });

  it.each(["nft", "legacy"])("in mode %s a failing second family undoes the first one", async (mode) => {
    const script = `bin=$(mktemp -d) && printf '#!/bin/sh\\nexit 2\\n' > $bin/ip6tables-${mode}-restore && chmod +x $bin/* && PATH=$bin:$PATH && export PATH && "$0"; status=$?; rm -r $bin; exit $status`;
    const { stdout, status } = await viaShell(script, { ...config, linkerd: { ipv6: true, "iptables-mode": mode } });
    expect([status, JSON.parse(stdout)]).toMatchObject([1, { code: 101 }]);
    expect(plugin.node.within(pod, `iptables-${mode}-save`, ["-t", "nat"])).not.toContain("PROXY_INIT");
  });

  it("reports a namespace of another kind", async () => {
    const { stdout } = await viaShell('CNI_NETNS=/proc/self/ns/uts exec "$0"');
    expect(JSON.parse(stdout)).toMatchObject({ code: 4, msg: expect.stringContaining("/proc/self/ns/uts") });
  });

  traced("waits for descriptors that do not block", async () => {
    const given = { cniVersion: "1.0.0", ips: [] };
    const stanza = JSON.stringify({ ...config, prevResult: given });
    const [input, output] = [join(plugin.directory, "input"), join(plugin.directory, "output")];
    await writeFile(input, plugin.input(stanza));
    const busy = "-e inject=read,write:error=EAGAIN:when=1..3";
    const script = `exec strace -o /dev/null -P ${input} -P ${output} ${busy} "$0" <${input} >${output}`;
    expect((await viaShell(script)).status).toBe(0);
    expect(await readFile(output, "utf8")).toBe(`${JSON.stringify(given)}\n`);
  });

  traced("auto is legacy if the kernel has no netfilter netlink", async () => {
    const inject = "strace -o /dev/null -e trace=socket -e inject=socket:error=EPROTONOSUPPORT";
    const { stderr, status } = await viaShell(`exec ${inject} "$0"`, alone);
    expect([status, stderr]).toEqual([0, expect.stringContaining("using legacy iptables")]);
    expect(plugin.node.within(pod, "iptables-legacy-save", ["-t", "nat"])).toContain("PROXY_INIT_REDIRECT");
    expect(rules(pod)).not.toContain("table ip linkerd-cni");
    for (const program of [inject, ""]) {
      expect(await viaShell(`CNI_COMMAND=CHECK exec ${program} "$0"`, alone)).toMatchObject({ status: 0, stdout: "" });
    }
  });

  traced("killed before any system call it leaves no rule or all", async () => {
    const log = join(plugin.directory, "calls");
    await viaShell(`exec strace -o ${log} "$0"`, alone);
    const whole = rules(pod);
    const names = (await readFile(log, "utf8")).split("\n").flatMap((line) => /^(\w+)\(/.exec(line)?.[1] ?? []);
    const occurrence = (at: number) => names.slice(0, at + 1).filter((name) => name === names[at]).length;
    const seen = new Map<string, number>();
    for (let at = names.length - 80; at < names.length; at++) {
      pod = await plugin.node.pod();
      await viaShell(`exec strace -o /dev/null -e inject=${names[at]}:signal=KILL:when=${occurrence(at)} "$0"`, alone);
      const found = rules(pod);
      seen.set(found, (seen.get(found) ?? 0) + 1);
    }
    expect([...seen.keys()].sort()).toEqual(["", whole]);
  });
});
