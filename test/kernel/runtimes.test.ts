/**
 * The installer, the plugin and the NRI plugin under each container runtime, and what docs/hosts.md says that the
 * runtimes do. A node is what the test before has left: installed, restarted, uninstalled.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputs, root } from "../../build/paths";
import { defaultStanza } from "../support/default-stanza";
import { buildPrograms } from "../support/program";
import { suite } from "../support/requirements";
import { isFull, rounds } from "../support/rounds";
import {
  CONFIGURATION,
  MESHED,
  NETWORK,
  RUNTIME_NAMES,
  type RuntimeName,
  RuntimeNode,
  runtimeMissing,
  type Sandbox,
  WITNESS,
} from "../support/runtime-node";
import { differences, snapshot } from "../support/snapshot";
import { until } from "../support/until";

jest.setTimeout(600_000);

const PLAIN = "plain";
const VERBS = ["ADD", "DEL", "CHECK", "GC", "STATUS"] as const;
type Verb = (typeof VERBS)[number];

/** Behaviour of a runtime, whatever is installed. */
interface Facts {
  /** Verbs by which it calls the plugins of a chain. */
  readonly calls: readonly Verb[];
  /** When a failing STATUS makes the node NotReady. */
  readonly heedsStatus: "always" | "when it starts" | "never";
  /** Verbs by which it calls the plugins of a folder beside the list, which is named as its network; none: it never does. */
  readonly dropIns: readonly Verb[];
  readonly nri: boolean;
}

const FACTS: Readonly<Record<RuntimeName, Facts>> = {
  "containerd 1.6": { calls: ["ADD", "DEL"], heedsStatus: "never", dropIns: [], nri: false },
  "containerd 2.2": {
    calls: ["ADD", "DEL", "STATUS"],
    heedsStatus: "always",
    dropIns: ["ADD", "DEL", "STATUS"],
    nri: true,
  },
  "containerd 2.3": {
    calls: ["ADD", "DEL", "STATUS"],
    heedsStatus: "always",
    dropIns: ["ADD", "DEL", "STATUS"],
    nri: true,
  },
  // For the DEL it saves the list without the folder.
  "CRI-O 1.34": { calls: VERBS, heedsStatus: "when it starts", dropIns: ["ADD", "GC", "STATUS"], nri: true },
};

/** Meshed pods that start while something is done, at least. */
const PODS = rounds(4, 20);

/** Starts a pod, looks whether it is redirected, and ends it. */
async function isRedirected(node: RuntimeNode, pod: string): Promise<boolean> {
  const sandbox = await node.run(pod);
  const is = await node.isRedirected(sandbox);
  await node.remove(sandbox);
  return is;
}

/** Starts meshed pods, one after another, while something is done. @returns whether each is redirected */
async function whilePodsStart(node: RuntimeNode, work: () => Promise<unknown>): Promise<readonly boolean[]> {
  const redirected: boolean[] = [];
  let over = false;
  const starting = (async () => {
    while (!over || redirected.length < PODS) redirected.push(await isRedirected(node, MESHED));
  })();
  await work().finally(() => {
    over = true;
    return starting;
  });
  return redirected;
}

const verbs = (of: readonly Verb[]) => (of.length === 0 ? "no" : of.join(", "));

test.each(RUNTIME_NAMES)("docs/hosts.md says what %s does", (name) => {
  const { calls, heedsStatus, dropIns, nri } = FACTS[name];
  const row = `| ${name} | ${verbs(calls)} | ${verbs(dropIns)} | ${heedsStatus} | ${nri ? "yes" : "no"} |`;
  const lines = readFileSync(join(root, "docs", "hosts.md"), "utf8").split("\n");
  expect(lines.filter((line) => line.startsWith(`| ${name} |`))).toEqual([row]);
});

describe.each(RUNTIME_NAMES)("%s", (name) => {
  suite("a node", runtimeMissing(name), () => {
    const facts = FACTS[name];
    let node: RuntimeNode;
    let before: Record<string, string>;
    /** Pods that live through everything. */
    const lasting: Sandbox[] = [];
    const netDir = (...names: string[]) => join(node.directories.netDir, ...names);
    const content = async () => ({
      ...(await snapshot(node.directories.netDir)),
      ...(await snapshot(node.directories.binDir)),
    });

    beforeAll(async () => {
      await buildPrograms();
      node = await RuntimeNode.start(name);
      before = await content();
    });
    afterAll(() => node?.close());

    const redirects = (pod: string) => isRedirected(node, pod);

    /** Calls of a runtime in the life of a pod, if the runtime restarts meanwhile. */
    test(`calls a chain's plugins by ${facts.calls.join(", ")}`, async () => {
      const sandbox = await node.run(PLAIN);
      await node.restart();
      await node.remove(sandbox);
      const called = new Set(await node.calls("bridge"));
      expect(VERBS.filter((verb) => called.has(verb))).toEqual(facts.calls);
    });

    test("redirects no pod before the installation", async () => {
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, false]);
    });

    test("redirects meshed pods from the installer's readiness on, and asks the API server about no other", async () => {
      await node.install();
      await node.api.requests();
      for (const pod of [PLAIN, MESHED]) lasting.push(await node.run(pod));
      expect(await Promise.all(lasting.map((each) => node.isRedirected(each)))).toEqual([false, true]);
      const asked = (await node.api.requests()).filter((path) => path.includes("/shop/pods/"));
      expect(asked).toEqual(["/api/v1/namespaces/shop/pods/meshed"]);
    });

    test("starts many pods at once", async () => {
      const pods = Array.from({ length: rounds(6, 40) }, (_, at) => (at % 2 === 0 ? MESHED : PLAIN));
      const sandboxes = await Promise.all(pods.map((pod) => node.run(pod)));
      const redirected = await Promise.all(sandboxes.map((each) => node.isRedirected(each)));
      expect(redirected).toEqual(pods.map((pod) => pod === MESHED));
      await Promise.all(sandboxes.map((each) => node.remove(each)));
    });

    test("its pods pass CHECK, and keep their rules through GC", async () => {
      for (const sandbox of lasting) {
        expect(await node.call("CHECK", sandbox)).toEqual([0, ""]);
      }
      expect(await node.call("GC", undefined, { "cni.dev/valid-attachments": [] })).toEqual([0, ""]);
      expect(await Promise.all(lasting.map((each) => node.isRedirected(each)))).toEqual([false, true]);
    });

    test("restarted, keeps pods with their addresses and rules, and redirects new ones", async () => {
      await node.restart();
      for (const [at, sandbox] of lasting.entries()) {
        expect(await node.addressOf(sandbox)).toBe(sandbox.address);
        expect(await node.isRedirected(sandbox)).toBe(at === 1);
      }
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, true]);
    });

    test("ends pods after the uninstallation, which then leaves no trace, and starts others as before", async () => {
      await node.uninstall();
      expect(node.directories.read(CONFIGURATION)).not.toContain("linkerd-cni");
      // CRI-O ends a pod by the chain that it was started with.
      if (!name.startsWith("CRI-O")) expect(differences(before, await content())).toEqual([]);
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, false]);
      for (const sandbox of lasting) await node.remove(sandbox);
      expect(differences(before, await content())).toEqual([]);
    });

    test("decides with the API server if the stanza does not request the pods' annotations", async () => {
      const { capabilities: _, ...stanza } = await ourStanza();
      await node.install({ CNI_NETWORK_CONFIG: JSON.stringify(stanza) });
      await node.api.requests();
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, true]);
      expect(await node.api.requests()).toContain("/api/v1/namespaces/shop/pods/plain");
      await node.uninstall();
    });

    test(`has no network while a strict STATUS fails: ${facts.heedsStatus}`, async () => {
      const install = async (more: object) =>
        node.install({
          UNINSTALL_ON_STOP: "never",
          CNI_NETWORK_CONFIG: JSON.stringify({ ...(await ourStanza()), "strict-status": true, ...more }),
        });
      await install({ "pod-lookup": "wrong" });
      await node.machine.endDaemon("installer", "KILL");
      const [code, output] = await node.call("STATUS");
      expect([code, output]).toEqual([1, expect.stringContaining("pod-lookup")]);
      const [isFound, isUnnoticed] = [expect.stringContaining("pod-lookup"), undefined];
      expect(await node.networkProblem()).toEqual(facts.heedsStatus === "always" ? isFound : isUnnoticed);
      await node.restart({ isReadyThen: facts.heedsStatus === "never" });
      if (facts.heedsStatus === "never") expect(await node.networkProblem()).toBeUndefined();
      else await until("it to notice", async () => (await node.networkProblem())?.includes("pod-lookup") === true);
      await install({});
      await node.machine.endDaemon("installer", "KILL");
      expect(await node.call("STATUS")).toEqual([0, ""]);
      await node.networkReady();
      await node.install();
      await node.uninstall();
      expect(differences(before, await content())).toEqual([]);
    });

    test(`calls the plugins of the folder ${NETWORK} by ${verbs(facts.dropIns)}`, async () => {
      mkdirSync(netDir(NETWORK));
      writeFileSync(netDir(NETWORK, "50-witness.conf"), JSON.stringify({ type: WITNESS }));
      await node.restart();
      const sandbox = await node.run(PLAIN);
      await node.restart();
      await node.remove(sandbox);
      const called = new Set(await node.calls(WITNESS));
      expect(VERBS.filter((verb) => called.has(verb))).toEqual(facts.dropIns);
    });

    const readsFolder = facts.dropIns.length > 0;
    /** Puts the plugin into the folder, with an installer beside it that chains nothing. */
    async function byHand(): Promise<void> {
      await node.install({ CHAINED: "false" });
      const stanza = await ourStanza();
      const kubernetes = { kubeconfig: netDir("ZZZ-linkerd-cni-kubeconfig") };
      mkdirSync(netDir(NETWORK), { recursive: true });
      writeFileSync(netDir(NETWORK, "99-linkerd-cni.conf"), JSON.stringify({ ...stanza, kubernetes }));
      await node.restart();
    }

    test(`${readsFolder ? "redirects" : "does not redirect"} by our plugin from that folder`, async () => {
      await byHand();
      await node.api.requests();
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, readsFolder]);
      expect(await node.api.requests()).not.toContain("/api/v1/namespaces/shop/pods/plain");
    });

    if (readsFolder) {
      test("is chained by the installer's own drop-in, through a restart, without a change of the list", async () => {
        await node.uninstall();
        rmSync(netDir(NETWORK), { recursive: true });
        const list = node.directories.read(CONFIGURATION);
        await node.install({ CHAINING: "dropin" });
        expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, true]);
        const lives = await node.run(MESHED);
        await node.restart();
        expect([await node.isRedirected(lives), await redirects(MESHED)]).toEqual([true, true]);
        expect(node.directories.read(CONFIGURATION)).toBe(list);
        await node.uninstall();
        expect(await redirects(MESHED)).toBe(false);
        await node.remove(lives);
        expect(differences(before, await content())).toEqual([]);
        await byHand();
      });

      test("reads the folder again when a file beside it is renamed", async () => {
        const reread = () => {
          writeFileSync(netDir("linkerd-cni.tmp"), "");
          renameSync(netDir("linkerd-cni.tmp"), netDir("linkerd-cni.reread"));
          rmSync(netDir("linkerd-cni.reread"));
        };
        const [folder, aside] = [netDir(NETWORK), join(node.directories.root, "aside")];
        renameSync(folder, aside);
        reread();
        await until("pods without redirect", async () => !(await redirects(MESHED)));
        renameSync(aside, folder);
        reread();
        await until("pods with redirect", () => redirects(MESHED));
      });
    }

    test("is as it was without the folder", async () => {
      rmSync(netDir(NETWORK), { recursive: true });
      await node.restart();
      expect(await redirects(MESHED)).toBe(false);
      await node.uninstall();
      expect(differences(before, await content())).toEqual([]);
    });

    const way = readsFolder ? "a drop-in, which leaves its list alone" : "an edit of its list";
    test(`is chained by ${way}, by the other way and back, and is put back`, async () => {
      const dropin = netDir(NETWORK, "99-linkerd-cni.conf");
      const list = netDir(CONFIGURATION);
      const [text, { ino }] = [readFileSync(list, "utf8"), statSync(list)];
      const isEdited = () => readFileSync(list, "utf8") !== text;
      // On a busy machine a runtime may read the folder only when it is asked to again, a minute later.
      const becomes = (way: "drop-in" | "edit") =>
        until(`a chain by ${way}`, () => existsSync(dropin) !== isEdited() && isEdited() === (way === "edit"), 180);
      await node.install({ CHAINING: "auto" });
      await becomes(readsFolder ? "drop-in" : "edit");
      if (readsFolder) expect(statSync(list).ino).toBe(ino);
      await node.api.requests();
      const pods = [await node.run(PLAIN), await node.run(MESHED)];
      expect(await node.api.requests()).not.toContain("/api/v1/namespaces/shop/pods/plain");
      await node.restart();
      expect(await Promise.all(pods.map((each) => node.isRedirected(each)))).toEqual([false, true]);
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, true]);
      for (const chaining of ["edit", "auto"]) {
        await node.machine.endDaemon("installer", "KILL");
        await node.install({ CHAINING: chaining });
        await becomes(readsFolder && chaining === "auto" ? "drop-in" : "edit");
        expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, true]);
      }
      await node.uninstall();
      // No runtime ends a pod by a drop-in that is gone.
      if (readsFolder) expect(differences(before, await content())).toEqual([]);
      expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, false]);
      for (const sandbox of pods) await node.remove(sandbox);
      expect(differences(before, await content())).toEqual([]);
    });

    test("loses no redirect in an upgrade, which an uninstallation then leaves no trace of", async () => {
      await node.install({ CHAINING: "auto" });
      const [lives, text] = [await node.run(MESHED), await ourStanza()];
      const linkerd = { ...text.linkerd, "outbound-ports-to-ignore": ["5432"] };
      const redirected = await whilePodsStart(node, () =>
        node.upgrade({ CHAINING: "auto", CNI_NETWORK_CONFIG: JSON.stringify({ ...text, linkerd }) }),
      );
      expect(redirected).not.toContain(false);
      const chain = readFileSync(readsFolder ? netDir(NETWORK, "99-linkerd-cni.conf") : netDir(CONFIGURATION), "utf8");
      expect(chain).toContain("5432");
      expect([await node.isRedirected(lives), await redirects(PLAIN)]).toEqual([true, false]);
      await node.remove(lives);
      await node.uninstall();
      expect(await redirects(MESHED)).toBe(false);
      expect(differences(before, await content())).toEqual([]);
    });

    if (facts.nri) {
      test("has NRI: pods that run get their redirect in place, new ones as they start", async () => {
        const [plain, meshed] = [await node.run(PLAIN), await node.run(MESHED)];
        expect(await node.isRedirected(meshed)).toBe(false);
        await node.startNri();
        await node.nriReady();
        expect([await node.isRedirected(plain), await node.isRedirected(meshed)]).toEqual([false, true]);
        expect([await redirects(PLAIN), await redirects(MESHED)]).toEqual([false, true]);
        await node.restart();
        // It connects again by itself.
        await until("NRI", () => redirects(MESHED));
        expect([await node.isRedirected(plain), await node.isRedirected(meshed)]).toEqual([false, true]);
        await node.remove(plain);
        await node.remove(meshed);
        await node.stopNri();
        expect(await redirects(MESHED)).toBe(false);
      });
    } else {
      test("has no NRI, as the NRI plugin says", async () => {
        await node.startNri();
        await until("what is missing", async () => /there is no socket .*nri\.sock/.test(await node.log("nri")));
        await node.stopNri();
      });
    }
  });
});

describe("CRI-O 1.34 with a namespaces_dir that is not nri.netnsDir", () => {
  suite("a node", runtimeMissing("CRI-O 1.34"), () => {
    test("starts meshed pods redirected by the chain, and the NRI plugin is not ready", async () => {
      await buildPrograms();
      const node = await RuntimeNode.start("CRI-O 1.34", { namespacesDir: "/run/crio-namespaces" });
      try {
        await node.install();
        await node.startNri();
        await node.nriReady();
        const sandbox = await node.run(MESHED);
        expect(sandbox.netns).toMatch(/^\/run\/crio-namespaces\//);
        expect(await node.isRedirected(sandbox)).toBe(true);
        const problem = `its network namespace ${sandbox.netns} is not in /var/run/netns: set nri.netnsDir`;
        await until("what is wrong", async () => (await node.nriProblem())?.includes(problem) === true);
        // A new plugin hears of the pod as of one that runs.
        await node.stopNri();
        await node.startNri();
        await until("what is wrong", async () => (await node.nriProblem())?.includes(problem) === true);
        await node.remove(sandbox);
      } finally {
        await node.close();
      }
    });
  });
});

const [OLD, NEW] = ["containerd 1.6", "containerd 2.2"] as const;

describe(`a node whose ${OLD} becomes ${NEW}`, () => {
  suite("under the same installer", runtimeMissing(OLD) ?? runtimeMissing(NEW), () => {
    let node: RuntimeNode;
    let before: Record<string, string>;

    beforeAll(async () => {
      await buildPrograms();
      node = await RuntimeNode.start(OLD);
    });
    afterAll(() => node?.close());

    test("goes from an edit to a drop-in while pods start, all with their redirect, and gets its list back", async () => {
      const text = node.directories.read(CONFIGURATION);
      before = await snapshot(node.directories.netDir);
      const isEdited = () => node.directories.read(CONFIGURATION) !== text;
      const hasDropin = () => existsSync(join(node.directories.netDir, NETWORK, "99-linkerd-cni.conf"));
      await node.install({ CHAINING: "auto" });
      expect([isEdited(), hasDropin()]).toEqual([true, false]);
      const lives = await node.run(MESHED);
      await node.replaceRuntime(NEW);
      const redirected = await whilePodsStart(node, async () => {
        // By itself it asks for the node's runtime once a minute.
        if (!isFull) await node.upgrade({ CHAINING: "auto" });
        await until("a drop-in instead of the edit", () => hasDropin() && !isEdited(), 180);
      });
      expect(redirected).not.toContain(false);
      expect([await node.isRedirected(lives), await isRedirected(node, MESHED)]).toEqual([true, true]);
      await node.remove(lives);
    });

    test("goes back to an edit within seconds after the Node names the former runtime, which reads no drop-ins", async () => {
      await node.replaceRuntime(OLD);
      const since = performance.now();
      await until("an edit", () => node.directories.read(CONFIGURATION).includes("linkerd-cni"), 70);
      expect(performance.now() - since).toBeLessThan(30_000);
      expect(await isRedirected(node, MESHED)).toBe(true);
      await node.uninstall();
      expect(differences(before, await snapshot(node.directories.netDir))).toEqual([]);
    });
  });
});

const ourStanza = async () => JSON.parse(await defaultStanza(outputs.manifests, false));
