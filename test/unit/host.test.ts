/** The C host, built into an executable: every function of host/port.ts but TLS. */
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { HostProgram, type Step, sanitized } from "../support/host";
import { missing, suite } from "../support/requirements";

jest.setTimeout(600_000);

const [AF_INET, AF_INET6] = [2, 10];
const { ENOENT, EBADF, EINVAL, EFAULT, ENOTDIR, ETIMEDOUT, EACCES, EAGAIN, EFBIG, EISDIR } = constants.errno;
const [O_RDONLY, O_WRONLY, O_CREAT] = [0, 1, 0o100];

let host: HostProgram;
let directory: string;
beforeAll(async () => {
  host = await HostProgram.build();
  directory = await mkdtemp(join(tmpdir(), "host-files-"));
});
afterAll(async () => {
  await host.close();
  await rm(directory, { recursive: true });
});

const utf8 = (text: string) => ({ bytes: [...Buffer.from(text)] });

describe("sockets", () => {
  it("listens, connects, and polls several at once", async () => {
    const path = join(directory, "socket");
    const address = { bytes: [1, 0, ...Buffer.from(path), 0] };
    const polled = (...descriptors: number[]) => ({
      bytes: descriptors.flatMap((descriptor) => [descriptor, 0, 0, 0, 1, 0, 0, 0]),
    });
    const [listener, , , client, refused, nothing, connected, waiting, connection, sent, both, received] =
      await host.run([
        ["socket", 1, 1, 0],
        ["bind", { result: 0 }, address],
        ["listen", { result: 0 }, 4],
        ["socket", 1, 1, 0],
        ["connect", { result: 3 }, { bytes: [1, 0, ...Buffer.from(`${path}-none`), 0] }],
        ["pollAll", polled(3), 10],
        ["connect", { result: 3 }, address],
        ["pollAll", polled(3), 10_000],
        ["accept", { result: 0 }, 0],
        ["send", { result: 3 }, utf8("hello"), 0],
        ["pollAll", polled(3, 5), 10_000],
        ["receive", { result: 8 }, { size: 5 }, 0],
      ]);
    expect([listener?.returned, client?.returned, connection?.returned]).toEqual([3, 4, 5]);
    expect([refused?.returned, nothing?.returned, connected?.returned]).toEqual([-ENOENT, 0, 0]);
    expect([waiting?.returned, sent?.returned, both?.returned, received?.returned]).toEqual([1, 5, 1, 5]);
    expect(Buffer.from(received?.filled[0] ?? []).toString()).toBe("hello");
  });

  it("polls more descriptors than one call of the plugin needs, but none beyond the process's limit", async () => {
    const none = (count: number) => ({ bytes: Array.from({ length: count * 8 }, () => 0xff) });
    const polled = await host.run(
      [
        ["pollAll", none(700), 0],
        ["pollAll", none(701), 0],
      ],
      { before: "ulimit -n 700" },
    );
    expect(polled.map(({ returned }) => returned)).toEqual([0, -EINVAL]);
  });
});

describe("files", () => {
  it("follows links in statx, and takes no smaller buffer than the kernel fills", async () => {
    const [path, link] = [join(directory, "sized"), join(directory, "link")];
    await writeFile(path, "12345");
    await symlink(path, link);
    const [good, small, missing] = await host.run([
      ["statx", link, 0, 0x7ff, { size: 256 }],
      ["statx", link, 0, 0x7ff, { size: 255 }],
      ["statx", `${link}x`, 0, 0x7ff, { size: 256 }],
    ]);
    expect([good?.returned, small?.returned, missing?.returned]).toEqual([0, -EFAULT, -ENOENT]);
    expect(Buffer.from(good?.filled[0] ?? []).readBigUInt64LE(0x28)).toBe(5n);
    expect(Buffer.from(small?.filled[0] ?? []).every((byte) => byte === 0)).toBe(true);
  });

  it.each<[string, Step, number]>([
    ["a path that is not there", ["open", "/nonexistent", O_RDONLY, 0], ENOENT],
    ["a path through a file", ["open", "/etc/passwd/x", O_RDONLY, 0], ENOTDIR],
    ["a path with a NUL", ["open", "/etc/passwd\0x", O_RDONLY, 0], EINVAL],
    ["an empty path", ["open", "", O_RDONLY, 0], ENOENT],
    ["writing a directory", ["open", "/", O_WRONLY, 0], EISDIR],
    ["reading no descriptor", ["read", 999, { size: 8 }], EBADF],
    ["writing no descriptor", ["write", -1, utf8("x")], EBADF],
    ["closing no descriptor", ["close", 999], EBADF],
    ["seeking no descriptor", ["seek", 999, 0, 0], EBADF],
    ["entering no namespace", ["setns", 0, 0x40000000], EINVAL],
  ])("gives the negated errno of %s", async (_, step, errno) => {
    expect(await host.returned(step)).toEqual([-errno]);
  });

  it.each<[string, Step]>([
    ["a number for a path", ["open", 5, O_RDONLY, 0]],
    ["a text for a number", ["close", "5"]],
    ["a text for bytes", ["write", 1, "text"]],
    ["nothing for bytes", ["write", 1]],
  ])("takes %s for a defect", async (_, step) => {
    const { status, stdout, stderr } = await host.end([step], { env: { CNI_COMMAND: "ADD" } });
    expect([status, JSON.parse(stdout).code]).toEqual([1, 102]);
    expect(stderr).toMatch(/^linkerd-cni: error: TypeError: /);
  });

  it("gives the errno of a file that outgrows the caller's limit", async () => {
    const path = join(directory, "limited");
    const [, first, second] = await host.run(
      [
        ["open", path, O_WRONLY | O_CREAT, 0o600],
        ["write", { result: 0 }, { bytes: Array(1024).fill(0) }],
        ["write", { result: 0 }, { bytes: [0] }],
      ],
      { before: "ulimit -f 2" }, // blocks of 512 bytes
    );
    expect([first?.returned, second?.returned]).toEqual([1024, -constants.errno.EFBIG]);
  });
});

describe("sockets", () => {
  it("speaks netlink: asks the kernel for a link by name", async () => {
    const ask = Buffer.alloc(32 + 8);
    ask.writeUInt32LE(ask.length, 0);
    ask.writeUInt16LE(18, 4); // RTM_GETLINK
    ask.writeUInt16LE(1, 6); // NLM_F_REQUEST
    ask.writeUInt16LE(7, 32); // length of the attribute
    ask.writeUInt16LE(3, 34); // IFLA_IFNAME
    ask.write("lo\0", 36);
    const [socket, , sent, ready, received, nothing] = await host.run([
      ["socket", 16, 3, 0],
      ["setsockopt", { result: 0 }, 270, 11, { bytes: [1, 0, 0, 0] }],
      ["send", { result: 0 }, { bytes: [...ask] }, 0],
      ["poll", { result: 0 }, 1, 5000],
      ["receive", { result: 0 }, { size: 8192 }, 0],
      ["receive", { result: 0 }, { size: 8192 }, 0x40],
    ]);
    const answer = Buffer.from(received?.filled[0] ?? []);
    expect(socket?.returned).toBeGreaterThan(2);
    expect([sent?.returned, ready?.returned]).toEqual([ask.length, 1]);
    expect(answer.readUInt32LE(0)).toBe(received?.returned);
    expect(answer.readUInt16LE(4)).toBe(16); // RTM_NEWLINK
    expect(nothing?.returned).toBe(-EAGAIN);
  });

  it("sleeps, and says when nothing happened", async () => {
    const [before, poll, after] = (await host.returned(["elapsed"], ["poll", -1, 0, 30.5], ["elapsed"])) as number[];
    expect(poll).toBe(0);
    expect((after ?? 0) - (before ?? 0)).toBeGreaterThanOrEqual(30);
  });

  it("enters a namespace", async () => {
    const net = "/proc/self/ns/net";
    expect(await host.returned(["open", net, O_RDONLY, 0], ["setns", { result: 0 }, 0x40000000])).toEqual(
      expect.arrayContaining([process.getuid?.() === 0 ? 0 : -constants.errno.EPERM]),
    );
  });
});

describe("texts", () => {
  const cases = [
    ...["plain", "grüße", "\u0000in the middle\u0000", "€", "😀", "\ufeffbyte order mark", ""].map((each) =>
      Buffer.from(each),
    ),
    ...["ff", "c3", "c328", "e28228", "e282", "f09f98", "f09f9841", "eda080", "edbfbf", "f4908080", "c0af", "e080af"],
    ...["f0808080", "f8888080", "fe", "80bf", "41c3a9ff42", "e2e282ac", "f1f1f1f1", "ed9fbf", "f48fbfbf", "efbfbf"],
  ].map((each) => (typeof each === "string" ? Buffer.from(each, "hex") : each));
  const random = Array.from({ length: 300 }, () =>
    randomBytes(24).map((byte, at) => (at % 3 === 0 ? byte : byte | 0x80)),
  );
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  it("decodes as WHATWG's Encoding says, and keeps a byte order mark", async () => {
    const all = [...cases, ...random];
    const decoded = await host.returned(...all.map((bytes): Step => ["decode", { bytes: [...bytes] }]));
    expect(decoded).toEqual(all.map((bytes) => decoder.decode(bytes)));
  });

  it("encodes, and puts U+FFFD for half a surrogate pair", async () => {
    const texts = ["plain", "grüße", "퟿", "😀\0", "", "힣\ud7ff\ue000"];
    const encoded = await host.returned(...texts.map((text): Step => ["encode", text]));
    expect(encoded).toEqual(texts.map((text) => [...Buffer.from(text)]));
    const [, lone] = await host.returned(["loneSurrogate"], ["encode", { result: 0 }]);
    expect(lone).toEqual([...new TextEncoder().encode("\ud800a\udc00")]);
  });

  it("reads the environment, whatever bytes it holds", async () => {
    const [good, unset, nul, bad] = (
      await host.run(
        [
          ["env", "GOOD"],
          ["env", "UNSET"],
          ["env", "GOOD\0"],
          ["env", "BAD"],
        ],
        {
          env: { GOOD: "grüße" },
          before: `export BAD="$(printf 'a\\377b')"`,
        },
      )
    ).map(({ returned }) => returned);
    expect([good, unset, nul, bad]).toEqual(["grüße", undefined, undefined, "a\ufffdb"]);
  });
});

describe("programs", () => {
  const sh = (script: string, input = "", env: readonly string[] = [], limit = 20_000): Step => [
    "run",
    "/bin/sh",
    ["-c", script],
    input,
    env,
    limit,
  ];

  it("gives status, output and error output", async () => {
    expect(
      await host.returned(sh("cat; echo error >&2; exit 7", "in\0put €\n"), ["run", "/bin/true", [], "", [], 5000]),
    ).toEqual([
      { status: 7, stdout: "in\0put €\n", stderr: "error\n", error: 0 },
      { status: 0, stdout: "", stderr: "", error: 0 },
    ]);
  });

  it("gives the environment and nothing else", async () => {
    const [env] = await host.returned(["run", "/usr/bin/env", [], "", ["A=1", "B=ö"], 5000]);
    expect(env).toEqual({ status: 0, stdout: "A=1\nB=ö\n", stderr: "", error: 0 });
    // The host's own ends of the pipes stay with it.
    const [, listed] = (await host.returned(
      ["open", "/etc/passwd", 0o2000000, 0],
      ["run", "/bin/ls", ["-l", "/proc/self/fd"], "", [], 5000],
    )) as { stdout: string }[];
    expect(listed?.stdout.match(/memfd:input/g)).toHaveLength(1);
    expect(listed?.stdout).not.toContain("/etc/passwd");
  });

  it("passes arguments as they are", async () => {
    const args = ["%s|", "", "a b", "'\"$x`", "ö", "\n"];
    const [made] = await host.returned(["run", "/usr/bin/printf", args, "", [], 5000]);
    expect(made).toMatchObject({ stdout: "|a b|'\"$x`|ö|\n|" });
  });

  it("moves a mebibyte in and out", async () => {
    const text = "0123456789abcdef".repeat(65_536);
    const [made] = await host.returned(["run", "/bin/cat", [], text, [], 30_000]);
    expect(made).toEqual({ status: 0, stdout: text, stderr: "", error: 0 });
    const [both] = (await host.returned(sh("cat; cat /proc/self/fd/0 >&2", text))) as {
      stdout: string;
      stderr: string;
    }[];
    expect([both?.stdout.length, both?.stderr.length]).toEqual([text.length, text.length]);
  });

  it("says that a signal ended it", async () => {
    expect(await host.returned(sh("echo before; kill -SEGV $$"))).toEqual([
      { status: null, signal: constants.signals.SIGSEGV, stdout: "before\n", stderr: "", error: 0 },
    ]);
  });

  suite("that end only when another process has looked", missing({ programs: ["strace"] }), () => {
    it("are left alone a moment after SIGKILL", async () => {
      const pid = join(directory, "tracer");
      // A tracer that is stopped does not let a process that it traces go.
      const script = `setsid strace -qq -o /dev/null -p $$ & echo $! > ${pid}
        until grep -q 'TracerPid:.[1-9]' /proc/$$/status; do sleep 0.05; done; kill -STOP $(cat ${pid}); sleep 600`;
      try {
        const [made] = await host.returned(sh(script, "", ["PATH=/usr/bin:/bin"], 3000));
        expect(made).toEqual({ status: null, stdout: "", stderr: "", error: -ETIMEDOUT });
        expect(await readFile(`/proc/${(await readFile(pid, "utf8")).trim()}/status`, "utf8")).toContain("T (stopped)");
      } finally {
        process.kill(Number(await readFile(pid, "utf8")), "SIGKILL");
      }
    });
  });

  it("takes SIGPIPE as any program does", async () => {
    const [made] = await host.returned(sh("yes | head -1; exit 3"));
    expect(made).toEqual({ status: 3, stdout: "y\n", stderr: "", error: 0 });
  });

  it.each([
    ["that is not there", "/nonexistent", ENOENT],
    ["that may not run", "/etc/passwd", EACCES],
    ["with a NUL in its path", "/bin/true\0x", EINVAL],
  ])("says that a program could not be started %s", async (_, program, errno) => {
    expect(await host.returned(["run", program, [], "", [], 5000])).toEqual([
      { status: null, stdout: "", stderr: "", error: -errno },
    ]);
  });

  it("refuses a NUL in an argument or the environment", async () => {
    const refused = { status: null, stdout: "", stderr: "", error: -EINVAL };
    expect(
      await host.returned(["run", "/bin/true", ["a\0b"], "", [], 5000], ["run", "/bin/true", [], "", ["A=\0"], 5000]),
    ).toEqual([refused, refused]);
  });

  it("ends a program that takes too long, with its children", async () => {
    const [made] = (await host.returned(sh("echo $$; sleep 1000 & wait", "", [], 300))) as { stdout: string }[];
    expect(made).toMatchObject({ status: null, error: -ETIMEDOUT });
    const group = made?.stdout.trim() ?? "";
    expect(group).toMatch(/^\d+$/);
    const [left] = (await host.returned(sh("ps -o pid= -o stat= -g $GROUP | grep -v Z", "", [`GROUP=${group}`]))) as {
      stdout: string;
    }[];
    expect(left?.stdout).toBe("");
  });

  it("ends a program that prints more than is read", async () => {
    const [made] = await host.returned(["run", "/usr/bin/yes", [], "", [], 60_000]);
    expect(made).toMatchObject({ status: null, error: -EFBIG });
  });

  it("ends a program that closed its outputs and goes on", async () => {
    const [made] = await host.returned(sh("exec >&- 2>&-; sleep 1000", "", [], 300));
    expect(made).toEqual({ status: null, stdout: "", stderr: "", error: -ETIMEDOUT });
  });

  it("learns how a program ended though the caller ignores ended children", async () => {
    const [made] = await host.run([sh("exit 5")], { before: "trap '' CHLD" });
    expect(made?.returned).toMatchObject({ status: 5, error: 0 });
  });

  it("keeps its descriptors apart where the caller closed the usual ones", async () => {
    const path = join(directory, "closed");
    await writeFile(path, JSON.stringify([sh("cat; echo error >&2; exit 7", "input"), ["open", "/etc/passwd", 0, 0]]));
    const { stdout } = await host.end("", { before: `exec 2>&- <${path}` });
    expect(JSON.parse(stdout)).toMatchObject([
      { returned: { status: 7, stdout: "input", stderr: "error\n" } },
      { returned: 3 },
    ]);
  });
});

describe("names", () => {
  it("resolves", async () => {
    const [made] = (await host.returned(["resolve", "localhost", AF_INET])) as string[][];
    expect(made).toContain("127.0.0.1");
    expect(await host.returned(["resolve", "::1", AF_INET6])).toEqual([["::1"]]);
  });

  it.each([
    ["a name with a NUL", "localhost\0"],
    ["no name at all", "-not a name-"],
  ])("finds no address for %s", async (_, name) => {
    expect(await host.returned(["resolve", name, AF_INET])).toEqual([[]]);
  });
});

describe("the process", () => {
  it("loads a script by its name", async () => {
    expect(await host.returned(["double", 21], ["double", 4])).toEqual([42, 8]);
    const { status, stderr } = await host.end([["load", "missing"]], { isLasting: true });
    expect([status, stderr]).toEqual([1, "linkerd-cni: error: ReferenceError: no script missing\n"]);
  });

  it("exits with a status at once", async () => {
    expect(await host.end([["exit", 7]])).toEqual({ status: 7, signal: null, stdout: "", stderr: "" });
  });

  const document = (msg: unknown) => ({
    cniVersion: "1.0.0",
    code: 102,
    msg,
    details: "linkerd-cni ended unexpectedly",
  });

  it.each<[string, Step, unknown]>([
    ["an exception", ["throwIt", 'with "quotes", \n and €'], 'Error: with "quotes", \n and €'],
    ["a script that ends without a status", ["end"], "InternalError: the main script ended without an exit status"],
    ["a stack overflow", ["overflow"], "RangeError: Maximum call stack size exceeded"],
    ["too much memory", ["fillMemory"], expect.stringContaining("out of memory")],
    ["too many objects", ["fillMemoryBySmallObjects"], expect.stringContaining("out of memory")],
  ])("answers %s with an error document", async (_, step, message) => {
    const { status, signal, stdout, stderr } = await host.end([step], { env: { CNI_COMMAND: "ADD" } });
    expect([status, signal]).toEqual([1, null]);
    expect(JSON.parse(stdout)).toEqual(document(message));
    expect(stderr).toMatch(/^linkerd-cni: error: ./);
  });

  it("answers with no document where no CNI runtime asks", async () => {
    const { status, stdout, stderr } = await host.end([["fillMemory"]]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^linkerd-cni: error: .*out of memory/);
  });

  it("goes on after a stack overflow that was caught", async () => {
    const made = await host.run([
      ["caught", "overflow"],
      ["parse", "1"],
    ]);
    expect(made).toMatchObject([{ returned: "RangeError: Maximum call stack size exceeded" }, { returned: "number" }]);
  });

  it("parses JSON 20,000 levels deep", async () => {
    expect(await host.run([["nested", 20_000]])).toMatchObject([{ returned: "object" }]);
  });

  // A sanitizer needs address space and stack of its own.
  if (!sanitized) {
    it.each([32, 64])("works with a stack of %d KiB", async (size) => {
      expect(
        await host.run(
          [
            ["caught", "overflow"],
            ["nested", 10_000],
          ],
          { before: `ulimit -s ${size}` },
        ),
      ).toMatchObject([{ returned: "RangeError: Maximum call stack size exceeded" }, { returned: "object" }]);
    });

    it("answers with one document, or works, in any address space that it can start in", async () => {
      for (let size = 2_000; size < 16_000; size += 250) {
        const { status, signal, stdout } = await host.end([["repeated", "€", 100_000]], {
          before: `ulimit -v ${size}`,
          env: { CNI_COMMAND: "ADD" },
        });
        const answer = JSON.parse(stdout);
        expect([size, signal, status === 0 ? Array.isArray(answer) : answer.code]).toEqual([
          size,
          null,
          status === 0 ? true : 102,
        ]);
      }
    });

    it("works in 64 MB of address space", async () => {
      expect(await host.run([["parse", "1"]], { before: "ulimit -v 65536" })).toMatchObject([{ returned: "number" }]);
    });
  }
});
