import type { ApiServer } from "./api-server";

/** Functions to read a kubeconfig, so that a runtime with built-in ones does not load others. */
export interface KubeconfigSource {
  /** @throws Error whose `code` is the name of an errno */
  readText(path: string): string;
  /** @throws Error, possibly with `linePos` */
  parseYaml(text: string): unknown;
  /** Decodes base64 to text. @throws Error */
  decodeBase64(text: string): string;
}

/**
 * An unusable kubeconfig. The message names the file and the field, and does not quote the file's content: in a damaged
 * file, any part may be a credential.
 */
class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** The field with an entry's content, by list. */
const NAMED_BY = {
  contexts: "current-context",
  clusters: "the context's cluster",
  users: "the context's user",
} as const;

/** One kubeconfig file: finds the entries of its current context, and the files it refers to. */
class Kubeconfig {
  constructor(
    private readonly path: string,
    private readonly document: Fields,
    private readonly source: KubeconfigSource,
  ) {}

  fail(problem: string): never {
    throw new KubeconfigError(`kubeconfig ${this.path}: ${problem}`);
  }

  text(fields: Fields, key: string): string | undefined {
    const value = fields[key];
    if (value === undefined || value === null || value === "") return undefined;
    return typeof value === "string" ? value : this.fail(`${key} is not a string`);
  }

  /** The member `inner` of the entry called `name` in the list `list`. */
  entry(list: keyof typeof NAMED_BY, inner: string, name: string | undefined): Fields {
    const entries = this.document[list];
    const found = Array.isArray(entries) ? entries.map(fieldsOf).find((each) => each["name"] === name) : undefined;
    return found === undefined
      ? this.fail(`${list} has no entry with the name in ${NAMED_BY[list]}`)
      : fieldsOf(found[inner]);
  }

  /** The context in `current-context`; without it, the only one, as in client-go. */
  context(): Fields {
    const current = this.text(this.document, "current-context");
    const contexts = this.document["contexts"];
    if (current !== undefined) return this.entry("contexts", "context", current);
    if (Array.isArray(contexts) && contexts.length === 1) return fieldsOf(fieldsOf(contexts[0])["context"]);
    return this.fail("current-context is missing, and contexts does not have exactly one entry");
  }

  /** PEM text from `KEY-data` in base64, or from the file in `KEY`. */
  material(fields: Fields, key: string): string | undefined {
    const data = this.text(fields, `${key}-data`);
    if (data !== undefined) return this.decoded(`${key}-data`, data);
    const file = this.text(fields, key);
    return file === undefined ? undefined : this.read(key, file);
  }

  private decoded(key: string, data: string): string {
    try {
      return this.source.decodeBase64(data);
    } catch {
      return this.fail(`${key} is not base64`);
    }
  }

  token(user: Fields): string | undefined {
    const inline = this.text(user, "token");
    if (inline !== undefined) return inline.trim();
    const file = this.text(user, "tokenFile");
    return file === undefined ? undefined : this.read("tokenFile", file).trim();
  }

  private read(key: string, file: string): string {
    const path = file.startsWith("/") ? file : `${this.path.slice(0, this.path.lastIndexOf("/") + 1)}${file}`;
    try {
      return this.source.readText(path);
    } catch (error) {
      return this.fail(`${key}: the file cannot be read (${(error as { readonly code?: string }).code})`);
    }
  }
}

function decode(path: string, text: string, { parseYaml }: KubeconfigSource): Fields {
  if (text.trimStart().startsWith("{")) {
    try {
      return fieldsOf(JSON.parse(text));
    } catch {
      // YAML's flow style begins like JSON.
    }
  }
  try {
    return fieldsOf(parseYaml(text));
  } catch (error) {
    const [at] =
      (error as { readonly linePos?: readonly { readonly line: number; readonly col: number }[] }).linePos ?? [];
    const where = at === undefined ? "" : ` (line ${at.line}, column ${at.col})`;
    throw new KubeconfigError(`kubeconfig ${path} is neither JSON nor YAML${where}`);
  }
}

/** Characters of a host name (RFC 1035). */
const LONGEST_NAME = 253;
const SERVER = /^https:\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$/;

function address(config: Kubeconfig, cluster: Fields): Pick<ApiServer, "host" | "port"> {
  const server = config.text(cluster, "server") ?? "";
  const match = SERVER.exec(server);
  const [, host = "", port = "443"] = match ?? [];
  if (match === null || host.length > LONGEST_NAME) return config.fail("server is not https://HOST[:PORT]");
  return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
}

/** Drops undefined members. */
function present<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}

function certificate(config: Kubeconfig, user: Fields): ApiServer["certificate"] {
  const cert = config.material(user, "client-certificate");
  const key = config.material(user, "client-key");
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

/**
 * The API server and credentials of a kubeconfig's current context. The installer writes JSON; other files are parsed
 * as YAML. @throws KubeconfigError
 */
export function loadKubeconfig(path: string, source: KubeconfigSource): ApiServer {
  let text: string;
  try {
    text = source.readText(path);
  } catch (error) {
    throw new KubeconfigError(`kubeconfig ${path} cannot be read: ${(error as Error).message}`);
  }
  const config = new Kubeconfig(path, decode(path, text, source), source);
  const context = config.context();
  const cluster = config.entry("clusters", "cluster", config.text(context, "cluster"));
  const user = config.entry("users", "user", config.text(context, "user"));
  return present<ApiServer>({
    ...address(config, cluster),
    ca: config.material(cluster, "certificate-authority"),
    serverName: config.text(cluster, "tls-server-name"),
    insecure: cluster["insecure-skip-tls-verify"] === true ? true : undefined,
    token: config.token(user),
    certificate: certificate(config, user),
  });
}
