/** Recorded connections between real container runtimes and the NRI plugin, byte for byte; see fixtures/README.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { texts } from "./runtime.testing";
import { Session } from "./session";

/** A connection's bytes, in order. */
function recording(name: string): readonly { readonly from: string; readonly bytes: Uint8Array }[] {
  const lines = readFileSync(join(__dirname, "fixtures", `${name}.txt`), "utf8")
    .trim()
    .split("\n");
  return lines.map((line) => {
    const [from = "", hex = ""] = line.split(" ");
    return { from, bytes: new Uint8Array(Buffer.from(hex, "hex")) };
  });
}

test.each([
  ["containerd-2.2", /^containerd v?2\.2\./],
  ["containerd-2.3", /^containerd v?2\.3\./],
])("%s is understood and gets the recorded answer", (name, runtime) => {
  const calls: (readonly [string, ...unknown[]])[] = [];
  const sent: number[] = [];
  const session = new Session({
    name: "linkerd-cni",
    index: "10",
    texts,
    send: (bytes) => void sent.push(...bytes),
    handler: {
      configured: (configuration) => calls.push(["configured", configuration]),
      synchronize: (sandboxes) => calls.push(["synchronize", ...sandboxes]),
      run: (sandbox) => calls.push(["run", sandbox]),
      create: (sandbox) => calls.push(["create", sandbox]),
      removed: (sandbox) => calls.push(["removed", sandbox]),
    },
  });
  session.register();
  const lines = recording(name);
  for (const { from, bytes } of lines) if (from === "runtime") session.receive(bytes);

  const answered = lines.flatMap(({ from, bytes }) => (from === "plugin" ? [...bytes] : []));
  expect(Buffer.from(sent).toString("hex")).toBe(Buffer.from(answered).toString("hex"));

  const sandbox = (pod: string) => ({
    id: expect.stringMatching(/^[0-9a-f]{64}$/),
    name: pod,
    namespace: "default",
    uid: expect.stringMatching(/./),
    labels: {},
    annotations: expect.objectContaining({ "linkerd.io/proxy-version": expect.any(String) }),
    netns: expect.stringMatching(/^\/.*\/cni-[0-9a-f-]{36}$/),
    hasAddress: true,
  });
  const started = calls.find(([event]) => event === "run")?.[1] as { readonly name: string };
  expect(calls).toEqual([
    ["configured", { runtime: expect.stringMatching(runtime), requestTimeout: 2000 }],
    ["synchronize", sandbox("running")],
    ["run", sandbox(started.name)],
    ["create", sandbox(started.name)],
    ["create", sandbox(started.name)],
    ["removed", expect.objectContaining({ name: started.name })],
  ]);
});
