import type { Artifact } from "./artifacts";
import { execute, ProgramError } from "./execute";

/** Remedies for errors of the registry's client. */
const REMEDIES: readonly (readonly [said: RegExp, remedy: (host: string) => string])[] = [
  [
    /unauthorized|denied|forbidden|basic credential|\b40[13]\b/i,
    (host) => `log in with an account that may push: oras login ${host} (docker login does, too)`,
  ],
  [/HTTP response to HTTPS client/i, () => "the registry speaks HTTP without TLS: add --plain-http"],
  [
    /connection refused|no such host|timeout|deadline|unreachable|server misbehaving/i,
    (host) => `${host} does not answer: check --registry and the network`,
  ],
];

/** A registry, or a path in one; oras talks to it, with the credentials of ~/.docker/config.json. */
export class Registry {
  private readonly host: string;

  /** @param base as `ghcr.io/example`, without a scheme @param plainHttp whether it speaks HTTP without TLS */
  constructor(
    readonly base: string,
    readonly plainHttp: boolean,
  ) {
    this.host = base.split("/")[0] ?? base;
  }

  /** An artifact's name in this registry, without tag or digest. */
  nameOf({ repository }: Pick<Artifact, "repository">): string {
    return `${this.base}/${repository}`;
  }

  /** The digest under this name and version; undefined if absent. */
  async find(artifact: Artifact): Promise<string | undefined> {
    const reference = `${this.nameOf(artifact)}:${artifact.tag}`;
    try {
      const flags = this.plainHttp ? ["--plain-http"] : [];
      return (await execute("oras", ["resolve", ...flags, reference])).toString().trim();
    } catch (error) {
      // oras has one exit code for all failures.
      if (error instanceof ProgramError && /: not found$/m.test(error.stderr)) return undefined;
      throw this.explained(error, reference);
    }
  }

  /** Pushes an artifact and its content under its version. */
  async push(artifact: Artifact): Promise<void> {
    const reference = `${this.nameOf(artifact)}:${artifact.tag}`;
    const from = ["--from-oci-layout", `${artifact.archive}:${artifact.tag}`];
    const flags = this.plainHttp ? ["--to-plain-http"] : [];
    await execute("oras", ["cp", "--no-tty", ...flags, ...from, reference]).catch((error) => {
      throw this.explained(error, reference);
    });
  }

  private explained(error: unknown, reference: string): Error {
    const { message } = error as Error;
    const remedy = REMEDIES.find(([said]) => said.test(message))?.[1](this.host);
    return new Error(`${reference}: ${message}${remedy === undefined ? "" : `\n  ${remedy}`}`, { cause: error });
  }
}
