import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Attachment, ChainError, CniRunner, loadNetwork } from "../../support/cni-runner";

const attachment: Attachment = {
  containerId: "c1",
  netns: "/run/netns/none",
  ifname: "eth0",
  args: { K8S_POD_NAME: "cart" },
  capabilities: { annotations: { a: "b" }, bandwidth: 1 },
};

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cni-runner-"));
});
afterEach(() => rm(directory, { recursive: true }));

/** A plugin that keeps each call's environment and input, and then does what the script says. */
async function plugin(name: string, script: string): Promise<void> {
  const calls = join(directory, "calls");
  const record = `printf '%s %s %s ' ${name} "$CNI_COMMAND" "$CNI_ARGS" >> ${calls}; cat >> ${calls}; echo >> ${calls}`;
  await writeFile(join(directory, name), `#!/bin/sh\n${record}\n${script}\n`);
  await chmod(join(directory, name), 0o755);
}

async function calls(): Promise<{ plugin: string; verb: string; args: string; input: Record<string, unknown> }[]> {
  const lines = (await readFile(join(directory, "calls"), "utf8")).trim().split("\n");
  return lines.map((line) => {
    const [plugin = "", verb = "", args = "", ...json] = line.split(" ");
    return { plugin, verb, args, input: JSON.parse(json.join(" ")) };
  });
}

const network = {
  name: "net",
  cniVersion: "1.0.0",
  plugins: [{ type: "first" }, { type: "second", capabilities: { annotations: true, bandwidth: false } }],
};

test("ADD hands each plugin the result before it, and what it declared; DEL goes backwards", async () => {
  await plugin("first", `echo '{"from":"first"}'`);
  await plugin("second", `echo '{"from":"second"}'`);
  const runner = new CniRunner(network, [directory]);
  const answers = await runner.add(attachment);
  expect(answers.map(({ type, stdout }) => [type, stdout.trim()])).toEqual([
    ["first", '{"from":"first"}'],
    ["second", '{"from":"second"}'],
  ]);
  await runner.del(attachment, { from: "second" });
  const seen = await calls();
  expect(seen.map(({ plugin: name, verb }) => `${verb} ${name}`)).toEqual([
    "ADD first",
    "ADD second",
    "DEL second",
    "DEL first",
  ]);
  expect(seen[0]).toEqual({
    plugin: "first",
    verb: "ADD",
    args: "IgnoreUnknown=1;K8S_POD_NAME=cart",
    input: { type: "first", name: "net", cniVersion: "1.0.0" },
  });
  expect(seen[1]?.input).toMatchObject({ prevResult: { from: "first" }, runtimeConfig: { annotations: { a: "b" } } });
  expect(seen[3]?.input).toMatchObject({ prevResult: { from: "second" } });
});

test("a plugin that fails ends the chain, and its answer is kept", async () => {
  await plugin("first", `echo '{"code":7,"msg":"no"}'; exit 1`);
  await plugin("second", "exit 0");
  const failure = await new CniRunner(network, [directory]).add(attachment).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ChainError);
  expect((failure as ChainError).message).toContain(
    'ADD of plugin first failed with exit code 1: {"code":7,"msg":"no"}',
  );
  expect((await calls()).map(({ plugin: name }) => name)).toEqual(["first"]);
});

test("a plugin that is not there is named", async () => {
  await expect(new CniRunner(network, [directory]).add(attachment)).rejects.toThrow("CNI plugin first is in none of");
});

test("the first valid file is the network; a single plugin counts as a list", async () => {
  await writeFile(join(directory, "00-broken.conf"), "{");
  await writeFile(join(directory, "05-ignored.txt"), '{"name":"ignored","type":"x"}');
  await writeFile(join(directory, "10-one.conf"), '{"name":"one","type":"x"}');
  await writeFile(join(directory, "20-two.conflist"), '{"name":"two","plugins":[{"type":"y"}]}');
  expect(await loadNetwork(directory)).toMatchObject({ name: "one", plugins: [{ type: "x" }] });
});
