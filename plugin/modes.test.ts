import { parseStanza } from "../cni/parse-stanza";
import { examples } from "../cni/redirect/examples.testing";
import { restoreText } from "../cni/redirect/iptables";
import { redirectRules } from "../cni/redirect/rules";
import { Errno } from "../host/errno";
import { FakeHost } from "../host/fake.testing";
import type { HostRun } from "../host/port";
import { messages } from "../netlink/codec";
import { answer } from "../netlink/fake.testing";
import { applyRules, compareRules, modeProblem } from "./modes";

const sets = redirectRules(examples.usual);
const BATCH_BEGIN = 0x10;
const ok: HostRun = { status: 0, stdout: "", stderr: "", error: 0 };

type Program = (path: string) => HostRun;
interface Made {
  readonly host: FakeHost;
  readonly log: string[];
  readonly ran: () => readonly string[];
}

/** A node with those programs in /sbin, which answer alike; `refusal` is what the kernel says to netfilter's socket. */
function machine(
  programs: readonly string[],
  answer: HostRun | Program,
  refusal?: number,
  broken = "none",
  kernel = "6.18.44",
): Made {
  const played: Program = (path) => (typeof answer === "function" ? answer(path) : answer);
  const failed: HostRun = { ...ok, status: 2, stderr: "broken" };
  const entries = programs.map((name): [string, () => HostRun] => {
    const path = `/sbin/${name}`;
    return [path, () => (path.includes(broken) ? failed : played(path))];
  });
  const host = new FakeHost({
    programs: Object.fromEntries(entries),
    files: { "/proc/self/net/ip_tables_names": "filter\nnat\n", "/proc/sys/kernel/osrelease": `${kernel}\n` },
    ...(refusal === undefined ? {} : { netfilter: () => -refusal }),
  });
  return { host, log: [], ran: () => host.ran.map(({ command }) => command) };
}

const linkerdIn = (mode: string, more: object = {}) =>
  parseStanza({ linkerd: { "iptables-mode": mode, ...more } as never }, "pods").linkerd;

function apply(mode: string, { host, log }: Made, more: object = {}, wanted = sets): string {
  return applyRules(host, linkerdIn(mode, more), wanted, (_, message) => log.push(message));
}

const compare = (mode: string, { host }: Made) => compareRules(host, linkerdIn(mode));

const all = ["nft", "legacy"].flatMap((kind) =>
  ["", "6"].flatMap((v) => ["save", "restore"].map((a) => `ip${v}tables-${kind}-${a}`)),
);
const plain = ["", "6"].flatMap((v) => ["save", "restore"].map((action) => `ip${v}tables-${action}`));

describe("the modes of the host", () => {
  it.each(["nft", "legacy"])("%s runs its own programs, one restore per family", (mode) => {
    const made = machine([...all, ...plain], ok);
    expect(apply(mode, made)).toBe(mode);
    expect(made.ran()).toEqual([
      `/sbin/iptables-${mode}-save -t nat`,
      `/sbin/ip6tables-${mode}-save -t nat`,
      `/sbin/iptables-${mode}-restore --noflush`,
      `/sbin/ip6tables-${mode}-restore --noflush`,
    ]);
    expect(made.host.sent).toEqual([]);
  });

  it("fall back to plain iptables, and wait for its lock if configured", () => {
    const made = machine(plain, ok);
    apply("nft", made, { "use-wait-flag": true });
    expect(made.ran()[2]).toBe("/sbin/iptables-restore --noflush -w 5");
  });

  it("name the missing program and the mode that needs none", () => {
    expect(() => apply("legacy", machine([], ok))).toThrow(
      /neither iptables-legacy-restore nor iptables-restore.*native/,
    );
    expect(() => apply("plain", machine([], ok))).toThrow(/no iptables-restore; mode native/);
  });

  it("report what could not be undone besides the failure", () => {
    let restores = 0;
    const first: Program = (path) => {
      if (!path.endsWith("tables-restore")) return ok;
      restores += 1;
      return restores === 1 ? ok : { ...ok, status: 2, stderr: "broken" };
    };
    const made = machine(plain, first);
    expect(() => apply("plain", made)).toThrow(
      expect.objectContaining({
        message: expect.stringContaining("/ip6tables-restore --noflush failed"),
        details: expect.stringMatching(/-A PROXY_INIT_OUTPUT .*\nnot undone: \/sbin\/iptables-restore/s),
      }),
    );
  });

  it("report a program's output", () => {
    const made = machine(plain, { ...ok, status: 4, stderr: "another app holds the lock\n" });
    expect(() => apply("plain", made)).toThrow(/\/sbin\/iptables-save -t nat failed with status 4: another app/);
  });
});

describe("a kernel that does not translate replies", () => {
  const old = (programs: readonly string[]) => machine(programs, ok, undefined, "none", "4.14.355-amzn2");

  it("has legacy iptables in mode auto, which says so", () => {
    const made = old(all);
    expect(apply("auto", made)).toBe("legacy");
    expect(made.host.sent).toEqual([]);
    expect(made.log).toEqual([expect.stringMatching(/kernel 4\.14\.355-amzn2 .*4\.18.*: using legacy iptables/)]);
    expect(() => apply("auto", old([]))).toThrow(/4\.14\.355.*; .*neither iptables-legacy-restore/);
  });

  it("is refused in mode native", () => {
    expect(() => apply("native", old(all))).toThrow(/kernel 4\.14\.355.*4\.18.*: set the mode to auto or legacy/);
  });

  it("keeps STATUS from being ready if nothing else can set the rules", () => {
    const problem = (mode: string, { host }: Made) => modeProblem(host, linkerdIn(mode));
    expect(problem("auto", old(all))).toBeUndefined();
    expect(problem("nft", old([]))).toBeUndefined();
    expect(problem("auto", old([]))).toMatch(/4\.14\.355.*, and the node has no iptables-legacy$/);
    expect(problem("native", old(all))).toMatch(/4\.14\.355/);
    expect(problem("native", machine([], ok))).toBeUndefined();
  });
});

describe("auto", () => {
  it("is native if the kernel supports it", () => {
    const made = machine(plain, ok);
    expect(apply("auto", made)).toBe("native");
    expect([made.ran(), made.log]).toEqual([[], []]);
  });

  it.each([Errno.EPROTONOSUPPORT, Errno.EOPNOTSUPP, Errno.ENOENT])(
    "is legacy if the kernel answers %d, and reports it",
    (errno) => {
      const made = machine(all, ok, errno);
      expect(apply("auto", made)).toBe("legacy");
      expect(made.ran().at(-1)).toBe("/sbin/ip6tables-legacy-restore --noflush -w 5");
      expect(made.log).toEqual([expect.stringContaining("no nf_tables")]);
    },
  );

  it("compares with legacy rules where nfnetlink knows no nf_tables: it refuses a batch by another number than a list", () => {
    const made = machine(all, { ...ok, stdout: "*nat\n:PROXY_INIT_OUTPUT - [0:0]\nCOMMIT\n" });
    const netfilter = (request: Uint8Array) => {
      const [{ type, sequence } = { type: 0, sequence: 0 }] = [...messages(request)];
      return [answer(sequence, type === BATCH_BEGIN ? Errno.EOPNOTSUPP : Errno.EINVAL)];
    };
    const replies: Uint8Array[] = [];
    made.host.send = (_, datagram) => {
      replies.push(...netfilter(datagram));
      return datagram.length;
    };
    made.host.receive = (_, into) => {
      const reply = replies.shift();
      if (reply === undefined) return -Errno.EAGAIN;
      into.set(reply);
      return reply.length;
    };
    expect(apply("auto", made)).toBe("legacy");
    expect(compare("auto", made).difference).toContain("PROXY_INIT_REDIRECT is missing");
  });

  it("fails with both reasons if legacy iptables also fails", () => {
    const reason =
      /no nf_tables .*ENOENT.*; iptables-mode auto: the node has neither iptables-legacy-restore nor [^;]*$/;
    expect(() => apply("auto", machine([], ok, Errno.ENOENT))).toThrow(reason);
    const broken = machine(all, ok, Errno.ENOENT, "legacy-restore");
    expect(() => apply("auto", broken)).toThrow(/no nf_tables .*ENOENT.*; .*legacy-restore .*status 2: broken/);
  });

  describe("compares", () => {
    const empty: HostRun = { ...ok, stdout: "*nat\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n" };
    const broken: HostRun = { ...ok, stdout: "*nat\n:PROXY_INIT_OUTPUT - [0:0]\nCOMMIT\n" };
    const right: Program = (path) => ({ ...ok, stdout: restoreText(sets[path.includes("ip6") ? 1 : 0]!, "") });
    const missing = "ip nat, PREROUTING: the jump to PROXY_INIT_REDIRECT is missing";
    it.each<[string, Parameters<typeof machine>, boolean, string | undefined]>([
      ["nothing if the node has no iptables", [[], ok], false, undefined],
      ["nothing if iptables has no chain of ours", [all, empty], false, undefined],
      ["nothing if iptables fails", [all, { ...empty, status: 1 }], false, undefined],
      ["iptables if it has a chain of ours", [all, broken], true, missing],
      ["iptables if the kernel has no nf_tables", [all, broken, Errno.ENOENT], true, missing],
      ["and finds no difference after ADD", [all, right], true, undefined],
    ])("%s", (_, made, isThere, difference) => {
      expect(compare("auto", machine(...made))).toEqual({ isThere, ...(difference && { difference }) });
    });
  });

  it("fails if the kernel refuses for another reason", () => {
    expect(() => apply("auto", machine(all, ok, Errno.EPERM))).toThrow(/EPERM/);
    expect(() => apply("native", machine(all, ok, Errno.EPROTONOSUPPORT))).toThrow(/EPROTONOSUPPORT/);
  });
});
