import { spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** One entry of a configuration list. */
type PluginConfig = Record<string, unknown> & { readonly type: string };

/** A CNI configuration list. */
export interface NetworkList {
  readonly name: string;
  readonly cniVersion?: string;
  readonly plugins: readonly PluginConfig[];
}

/** The pod of a call. */
export interface Attachment {
  readonly containerId: string;
  /** Path of the network namespace. */
  readonly netns: string;
  readonly ifname: string;
  /** CNI_ARGS as key and value. */
  readonly args: Readonly<Record<string, string>>;
  /** Passed to each plugin that declares the capability. */
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** One plugin's answer. */
interface Answer {
  readonly type: string;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly milliseconds: number;
}

/** A plugin of the chain failed; `answers` contains those of previous plugins and its own. */
export class ChainError extends Error {
  override readonly name = "ChainError";
  constructor(
    verb: string,
    readonly answers: readonly Answer[],
  ) {
    const last = answers.at(-1);
    super(`${verb} of plugin ${last?.type} failed with exit code ${last?.code}: ${last?.stdout}${last?.stderr}`);
  }
}

const CONFIG = /\.(conf|conflist|json)$/;

function asList(text: string): NetworkList | undefined {
  try {
    const config = JSON.parse(text) as NetworkList & PluginConfig;
    if (Array.isArray(config.plugins) && config.plugins.length > 0) return config;
    return typeof config.type === "string" ? { ...config, plugins: [config] } : undefined;
  } catch {
    return undefined;
  }
}

/** The configuration a runtime would use: the first valid file of the directory in lexicographic order. */
export async function loadNetwork(directory: string): Promise<NetworkList> {
  const names = (await readdir(directory)).filter((name) => CONFIG.test(name)).sort();
  for (const name of names) {
    const list = asList(await readFile(join(directory, name), "utf8"));
    if (list !== undefined) return list;
  }
  throw new Error(`no valid CNI configuration in ${directory}`);
}

function run(path: string, environment: NodeJS.ProcessEnv, stdin: string): Promise<Omit<Answer, "type">> {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(path, [], { env: environment, cwd: "/", stdio: "pipe" });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    // A plugin may exit without reading its input.
    child.stdin.on("error", () => undefined);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? -1, stdout, stderr, milliseconds: performance.now() - start }));
    child.stdin.end(stdin);
  });
}

/**
 * Runs a configuration list as libcni does (CNI specification, section 4): every plugin gets the list's name and
 * version, the result before it as `prevResult`, and under `runtimeConfig` what it declared under `capabilities`.
 */
export class CniRunner {
  constructor(
    private readonly network: NetworkList,
    /** Directories to search for plugins, in order; becomes CNI_PATH. */
    private readonly path: readonly string[],
  ) {}

  /** @returns each plugin's answer; the last one's `stdout` is the result. @throws ChainError */
  async add(attachment: Attachment): Promise<Answer[]> {
    const answers: Answer[] = [];
    let prevResult: unknown;
    for (const plugin of this.network.plugins) {
      const answer = await this.call("ADD", plugin, attachment, prevResult);
      answers.push(answer);
      if (answer.code !== 0) throw new ChainError("ADD", answers);
      prevResult = JSON.parse(answer.stdout);
    }
    return answers;
  }

  /** In list order, each with the final result of ADD. @throws ChainError */
  check(attachment: Attachment, result: unknown): Promise<Answer[]> {
    return this.each("CHECK", this.network.plugins, attachment, result);
  }

  /** In reverse order. @throws ChainError */
  del(attachment: Attachment, result: unknown): Promise<Answer[]> {
    return this.each("DEL", [...this.network.plugins].reverse(), attachment, result);
  }

  private async each(verb: string, plugins: readonly PluginConfig[], attachment: Attachment, prevResult: unknown) {
    const answers: Answer[] = [];
    for (const plugin of plugins) {
      const answer = await this.call(verb, plugin, attachment, prevResult);
      answers.push(answer);
      if (answer.code !== 0) throw new ChainError(verb, answers);
    }
    return answers;
  }

  private async call(verb: string, plugin: PluginConfig, attachment: Attachment, prevResult: unknown): Promise<Answer> {
    const runtimeConfig = this.runtimeConfig(plugin, attachment);
    const stdin = JSON.stringify({
      ...plugin,
      name: this.network.name,
      cniVersion: this.network.cniVersion ?? "0.1.0",
      ...(runtimeConfig === undefined ? {} : { runtimeConfig }),
      ...(prevResult === undefined ? {} : { prevResult }),
    });
    const environment = {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      CNI_COMMAND: verb,
      CNI_CONTAINERID: attachment.containerId,
      CNI_NETNS: attachment.netns,
      CNI_IFNAME: attachment.ifname,
      CNI_PATH: this.path.join(":"),
      CNI_ARGS: Object.entries({ IgnoreUnknown: "1", ...attachment.args })
        .map(([key, value]) => `${key}=${value}`)
        .join(";"),
    };
    return { type: plugin.type, ...(await run(await this.find(plugin.type), environment, stdin)) };
  }

  private runtimeConfig(plugin: PluginConfig, attachment: Attachment): Record<string, unknown> | undefined {
    const declared = (plugin["capabilities"] ?? {}) as Record<string, boolean>;
    const given = Object.entries(attachment.capabilities).filter(([name]) => declared[name] === true);
    return given.length === 0 ? undefined : Object.fromEntries(given);
  }

  private async find(type: string): Promise<string> {
    for (const directory of this.path) {
      if ((await readdir(directory).catch((): string[] => [])).includes(type)) return join(directory, type);
    }
    throw new Error(`CNI plugin ${type} is in none of ${this.path.join(", ")}`);
  }
}
