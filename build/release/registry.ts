import type { Artifact } from "./artifacts";
import { execute, ProgramError } from "./execute";

/** A registry, or a path in one; oras talks to it, with the credentials of ~/.docker/config.json. */
export class Registry {
  /** @param base as `ghcr.io/example`, without a scheme @param plainHttp whether it speaks HTTP without TLS */
  constructor(
    readonly base: string,
    readonly plainHttp: boolean,
  ) {}

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
      throw error;
    }
  }

  /** Pushes an artifact and its content under its version. */
  async push(artifact: Artifact): Promise<void> {
    const reference = `${this.nameOf(artifact)}:${artifact.tag}`;
    const from = ["--from-oci-layout", `${artifact.archive}:${artifact.tag}`];
    const flags = this.plainHttp ? ["--to-plain-http"] : [];
    await execute("oras", ["cp", "--no-tty", ...flags, ...from, reference]);
  }
}
