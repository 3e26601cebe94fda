import { parseStanza } from "../cni/parse-stanza";
import { examples } from "../cni/redirect/examples.testing";
import { redirectRules } from "../cni/redirect/rules";
import type { World } from "./call";
import type { HostRun } from "./iptables/host";
import { applierFor } from "./modes";
import { messages } from "./netlink/codec";
import { answer, FakeKernel } from "./netlink/fake.testing";
import { Errno, SystemError } from "./system-error";

const sets = redirectRules(examples.usual);
const BATCH_BEGIN = 0x10;
const ok: HostRun = { status: 0, stdout: "", stderr: "" };

function makeWorld(programs: readonly string[], answer: HostRun, refusal?: number, broken = "none") {
  const kernel = new FakeKernel([]);
  const ran: string[] = [];
  const inputs: string[] = [];
  const log: string[] = [];
  if (refusal !== undefined) {
    kernel.exchange = () => {
      throw new SystemError("open a netfilter socket", refusal);
    };
  }
  const host: World["host"] = {
    find: (name) => (programs.includes(name) ? `/sbin/${name}` : undefined),
    run: (path, args, input) => {
      ran.push([path, ...args].join(" "));
      inputs.push(input);
      return path.includes(broken) ? { status: 2, stdout: "", stderr: "broken" } : answer;
    },
  };
  return { world: { kernel, host } as unknown as World, kernel, ran, inputs, log };
}

function applierIn(mode: string, made: ReturnType<typeof makeWorld>, more: object = {}) {
  const { linkerd } = parseStanza({ linkerd: { "iptables-mode": mode, ...more } as never }, "pods");
  const log = (_: string, message: string) => made.log.push(message);
  return applierFor({ linkerd, world: made.world, log });
}

function apply(mode: string, made: ReturnType<typeof makeWorld>, more: object = {}): string {
  const applier = applierIn(mode, made, more);
  applier.apply(sets);
  return applier.mode;
}

const all = ["nft", "legacy"].flatMap((kind) =>
  ["", "6"].flatMap((v) => ["save", "restore"].map((a) => `ip${v}tables-${kind}-${a}`)),
);
const plain = ["", "6"].flatMap((v) => ["save", "restore"].map((action) => `ip${v}tables-${action}`));

describe("the modes of the host", () => {
  it.each(["nft", "legacy"])("%s runs its own programs, one restore a family", (mode) => {
    const made = makeWorld([...all, ...plain], ok);
    expect(apply(mode, made)).toBe(mode);
    expect(made.ran).toEqual([
      `/sbin/iptables-${mode}-save -t nat`,
      `/sbin/ip6tables-${mode}-save -t nat`,
      `/sbin/iptables-${mode}-restore --noflush`,
      `/sbin/ip6tables-${mode}-restore --noflush`,
    ]);
    expect(made.kernel.sent).toEqual([]);
  });

  it("fall back to plain iptables, and wait for its lock where asked to", () => {
    const made = makeWorld(plain, ok);
    apply("nft", made, { "use-wait-flag": true });
    expect(made.ran[2]).toBe("/sbin/iptables-restore --noflush -w 5");
  });

  it("name the missing program and the mode that needs none", () => {
    expect(() => apply("legacy", makeWorld([], ok))).toThrow(
      /neither iptables-legacy-restore nor iptables-restore.*native/,
    );
    expect(() => apply("plain", makeWorld([], ok))).toThrow(/no iptables-restore; mode native/);
  });

  it("undo the first family where the second fails", () => {
    const made = makeWorld(plain, ok, undefined, "ip6tables-restore");
    expect(() => apply("plain", made)).toThrow(/ip6tables-restore --noflush failed with status 2: broken/);
    expect(made.ran.at(-1)).toBe("/sbin/iptables-restore --noflush");
    expect(made.inputs.at(-1)).toMatch(/-D PREROUTING .*\n-F PROXY_INIT_REDIRECT\n-X PROXY_INIT_REDIRECT\n/);
  });

  it("take away the rules of a family that an earlier ADD set rules for", () => {
    const ours: HostRun = { ...ok, stdout: ":PROXY_INIT_OUTPUT - [0:0]\n" };
    const made = makeWorld(plain, ours);
    applierIn("plain", made).apply(sets.slice(0, 1));
    expect(made.ran.at(-1)).toBe("/sbin/ip6tables-restore --noflush");
    expect(made.inputs.at(-1)).toBe("*nat\n-F PROXY_INIT_OUTPUT\n-X PROXY_INIT_OUTPUT\nCOMMIT\n");
    const fresh = makeWorld(plain, ok);
    applierIn("plain", fresh).apply(sets.slice(0, 1));
    expect(fresh.ran.filter((command) => command.includes("ip6tables"))).toEqual([]);
  });

  it("say what could not be undone besides what failed", () => {
    const made = makeWorld(plain, ok, undefined, "tables-restore");
    const { run } = made.world.host;
    let first = true;
    made.world.host.run = (path, ...rest) => {
      if (!path.endsWith("/iptables-restore") || !first) return run(path, ...rest);
      first = false;
      return ok;
    };
    expect(() => apply("plain", made)).toThrow(
      expect.objectContaining({
        message: expect.stringContaining("/ip6tables-restore --noflush failed"),
        details: expect.stringMatching(/-A PROXY_INIT_OUTPUT .*\nnot undone: \/sbin\/iptables-restore/s),
      }),
    );
  });

  it("say what a program said", () => {
    const made = makeWorld(plain, { status: 4, stdout: "", stderr: "another app holds the lock\n" });
    expect(() => apply("plain", made)).toThrow(/\/sbin\/iptables-save -t nat failed with status 4: another app/);
  });
});

describe("auto", () => {
  it("is native where the kernel can", () => {
    const made = makeWorld(plain, ok);
    expect(apply("auto", made)).toBe("native");
    expect([made.ran, made.log]).toEqual([[], []]);
  });

  it.each([Errno.EPROTONOSUPPORT, Errno.EOPNOTSUPP, Errno.ENOENT])(
    "is legacy where it answers %d, and says so",
    (errno) => {
      const made = makeWorld(all, ok, errno);
      expect(apply("auto", made)).toBe("legacy");
      expect(made.ran.at(-1)).toBe("/sbin/ip6tables-legacy-restore --noflush -w 5");
      expect(made.log).toEqual([expect.stringContaining("no nf_tables")]);
    },
  );

  it("compares with legacy rules where nfnetlink knows no nf_tables: it refuses a batch by another number than a list", () => {
    const ours: HostRun = { ...ok, stdout: "*nat\n:PROXY_INIT_OUTPUT - [0:0]\nCOMMIT\n" };
    const made = makeWorld(all, ours);
    made.kernel.exchange = (request) => {
      const [{ type, sequence } = { type: 0, sequence: 0 }] = [...messages(Buffer.from(request))];
      return [answer(sequence, type === BATCH_BEGIN ? Errno.EOPNOTSUPP : Errno.EINVAL)];
    };
    expect(apply("auto", made)).toBe("legacy");
    expect(applierIn("auto", made).difference(sets)).toContain("PROXY_INIT_REDIRECT is missing");
  });

  it("fails with both reasons where legacy iptables cannot either", () => {
    const reason =
      /no nf_tables .*ENOENT.*; iptables-mode auto: the node has neither iptables-legacy-restore nor [^;]*$/;
    expect(() => apply("auto", makeWorld([], ok, Errno.ENOENT))).toThrow(reason);
    const broken = makeWorld(all, ok, Errno.ENOENT, "legacy-restore");
    expect(() => apply("auto", broken)).toThrow(/no nf_tables .*ENOENT.*; .*legacy-restore .*status 2: broken/);
  });

  describe("compares", () => {
    const empty: HostRun = { ...ok, stdout: "*nat\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n" };
    const ours: HostRun = { ...ok, stdout: "*nat\n:PROXY_INIT_OUTPUT - [0:0]\nCOMMIT\n" };
    const native = "table ip linkerd-cni is missing";
    const legacy = "ip nat, PREROUTING: the jump to PROXY_INIT_REDIRECT is missing";
    it.each<[string, Parameters<typeof makeWorld>, string]>([
      ["with the table where the node has no iptables", [[], ok], native],
      ["with the table where iptables has no chain of ours", [all, empty], native],
      ["with the table where iptables fails", [all, { ...empty, status: 1 }], native],
      ["with iptables where it has a chain of ours", [all, ours], legacy],
      ["with iptables where the kernel has no nf_tables", [all, empty, Errno.ENOENT], legacy],
    ])("%s", (_, made, difference) => {
      expect(applierIn("auto", makeWorld(...made)).difference(sets)).toBe(difference);
    });
  });

  it("fails where the kernel refuses for another reason", () => {
    expect(() => apply("auto", makeWorld(all, ok, Errno.EPERM))).toThrow(/EPERM/);
    expect(() => apply("native", makeWorld(all, ok, Errno.EPROTONOSUPPORT))).toThrow(/EPROTONOSUPPORT/);
  });
});
