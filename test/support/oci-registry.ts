import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../build/paths";
import { get } from "./http";
import { until } from "./until";

const run = promisify(execFile);

/** Configuration of Debian's docker-registry. @param htpasswd a file of users; without it every client may push */
export const registryConfig = (
  address: string,
  storage: string,
  htpasswd?: string,
  /** Files of its certificate and key. @default HTTP without TLS */
  tls?: { readonly certificate: string; readonly key: string },
): string =>
  JSON.stringify({
    version: "0.1",
    log: { level: "info", accesslog: { disabled: false } },
    storage: { filesystem: { rootdirectory: storage } },
    http: { addr: address, tls },
    ...(htpasswd === undefined ? {} : { auth: { htpasswd: { realm: "test", path: htpasswd } } }),
  });

/** A registry on the loopback, with its storage in a directory. */
export class OciRegistry {
  private constructor(
    readonly address: string,
    /** Directory of all its data. */
    readonly storage: string,
    private readonly server: ChildProcess,
  ) {}

  static async start(port: number, directory: string, htpasswd?: string): Promise<OciRegistry> {
    const [address, storage] = [`127.0.0.1:${port}`, join(directory, "storage")];
    await mkdir(storage, { recursive: true });
    const config = join(directory, "registry.json");
    await writeFile(config, registryConfig(address, storage, htpasswd));
    const server = spawn("docker-registry", ["serve", config], { stdio: "ignore" });
    const registry = new OciRegistry(address, storage, server);
    const answers = async () => (await get(port, "/v2/")).status > 0;
    await until(`docker-registry on ${address}`, answers).catch(async (error: Error) => {
      await registry.stop();
      throw error;
    });
    return registry;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill("SIGKILL");
    await ended;
  }
}

/** A key pair of cosign, and a Sigstore without services: nothing leaves the machine. */
export class SigningKey {
  static readonly PASSWORD = "rehearsal";

  private constructor(private readonly directory: string) {}

  static async make(directory: string): Promise<SigningKey> {
    await mkdir(directory, { recursive: true });
    const env = { ...process.env, COSIGN_PASSWORD: SigningKey.PASSWORD };
    const key = new SigningKey(directory);
    await run("cosign", ["generate-key-pair"], { cwd: directory, env });
    await run("cosign", ["signing-config", "create", "--out", key.path("signing-config.json")]);
    await run("cosign", ["trusted-root", "create", "--out", key.path("trusted-root.json")]);
    return key;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** How a release signs with it. */
  get signs(): readonly string[] {
    const services = ["--signing-config", this.path("signing-config.json"), "--trusted-root"];
    return ["--key", this.path("cosign.key"), ...services, this.path("trusted-root.json")];
  }

  /** Options with which cosign verifies its signatures. */
  get verifies(): readonly string[] {
    return ["--key", this.path("cosign.pub"), "--insecure-ignore-tlog"];
  }
}

/** The command line of `npm run release -- …`, without npm. */
export const releaseCommand = (...args: readonly string[]): readonly string[] => [
  process.execPath,
  join(root, "node_modules", "tsx", "dist", "cli.mjs"),
  join(root, "build", "release", "main.ts"),
  ...args,
];
