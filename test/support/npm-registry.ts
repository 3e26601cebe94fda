import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "./until";

/** Verdaccio on the loopback, without the public registry behind it. */
export class NpmRegistry {
  private constructor(
    readonly url: string,
    /** A file for NPM_CONFIG_USERCONFIG, of a user who may publish. */
    readonly credentials: string,
    private readonly server: ChildProcess,
  ) {}

  static async start(port: number, directory: string): Promise<NpmRegistry> {
    await mkdir(directory, { recursive: true });
    const [address, config] = [`127.0.0.1:${port}`, join(directory, "verdaccio.yaml")];
    const settings = {
      storage: join(directory, "storage"),
      auth: { htpasswd: { file: join(directory, "htpasswd") } },
      packages: { "**": { access: "$all", publish: "$authenticated" } },
      // Largest package, in JSON.
      max_body_size: "50mb",
      log: { type: "file", path: join(directory, "log"), level: "info" },
    };
    await writeFile(config, JSON.stringify(settings));
    const server = spawn("verdaccio", ["--config", config, "--listen", address], { stdio: "ignore" });
    const url = `http://${address}/`;
    const credentials = join(directory, "npmrc");
    const registry = new NpmRegistry(url, credentials, server);
    const answers = async () => {
      await writeFile(credentials, `//${address}/:_authToken=${await addUser(url)}\n`);
      return true;
    };
    await until(`verdaccio on ${address}`, answers).catch(async (error: Error) => {
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

/** Adds a user, as `npm adduser` does. @returns its token */
async function addUser(url: string): Promise<string> {
  const body = JSON.stringify({ name: "releaser", password: "rehearsal" });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}-/user/org.couchdb.user:releaser`, { method: "PUT", headers, body });
  const { token } = (await response.json()) as { token?: string };
  if (token === undefined) throw new Error(`no token: ${response.status}`);
  return token;
}
