import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execute } from "./execute";

/** Types of attestations, with cosign's names. */
const TYPES = {
  signature: "https://sigstore.dev/cosign/sign/v1",
  sbom: "cyclonedx",
  provenance: "slsaprovenance1",
};
export type Attestation = keyof typeof TYPES;

/** The key or identity that signs, and how it is verified. */
export interface Signing {
  /** A private key: a file, or whatever else cosign takes (`awskms://…`). Without it the signature is keyless. */
  readonly key?: string;
  /** Keyless: the certificate's identity and issuer. */
  readonly identity?: string;
  readonly issuer?: string;
  /** A Sigstore other than the public one, or none at all. */
  readonly signingConfig?: string;
  readonly trustedRoot?: string;
}

/** Signs and verifies artifacts. */
export class Cosign {
  private constructor(
    private readonly signs: readonly string[],
    private readonly verifies: readonly string[],
  ) {}

  /**
   * @param work a directory for the public key
   * @returns undefined if nothing was given to sign with
   * @throws if a file is missing, or the key's password
   */
  static async from(signing: Signing, plainHttp: boolean, work: string): Promise<Cosign | undefined> {
    const { key, identity, issuer, signingConfig, trustedRoot } = signing;
    if (key === undefined && (identity === undefined || issuer === undefined)) return undefined;
    const files = { "--key": key, "--signing-config": signingConfig, "--trusted-root": trustedRoot };
    for (const [flag, path] of Object.entries(files)) {
      if (path === undefined || path.includes("://") || existsSync(path)) continue;
      throw new Error(`${flag} ${path}: there is no such file${flag === "--key" ? ": cosign generate-key-pair" : ""}`);
    }
    const registry = plainHttp ? ["--allow-http-registry"] : [];
    const roots = trustedRoot === undefined ? [] : ["--trusted-root", trustedRoot];
    const config = signingConfig === undefined ? [] : ["--signing-config", signingConfig];
    const signs = ["--yes", ...registry, ...config, ...roots, ...(key === undefined ? [] : ["--key", key])];
    const unlogged = signingConfig !== undefined && !(await namesLog(signingConfig));
    const verifies = [...registry, ...roots, ...(unlogged ? ["--insecure-ignore-tlog"] : [])];
    if (key === undefined) {
      const whose = ["--certificate-identity", identity ?? "", "--certificate-oidc-issuer", issuer ?? ""];
      return new Cosign(signs, [...verifies, ...whose]);
    }
    const publicKey = join(work, "cosign.pub");
    const read = execute("cosign", ["public-key", "--key", key]);
    const content = await read.catch((error: Error) => {
      throw new Error(`--key ${key}: ${error.message}\n  COSIGN_PASSWORD in the environment is the key's password`);
    });
    await writeFile(publicKey, content);
    return new Cosign(signs, [...verifies, "--key", publicKey]);
  }

  /** Whether an artifact has a valid signature or attestation. @param reference by digest */
  async has(reference: string, type: Attestation): Promise<boolean> {
    return this.verify(reference, type).then(
      () => true,
      () => false,
    );
  }

  /**
   * Signs an artifact, or attaches a signed statement about it, and verifies it as a user would.
   * @param reference by digest
   * @param predicate path of the statement, as JSON. @default only a signature
   */
  async add(reference: string, type: Attestation, predicate?: string): Promise<void> {
    const what = predicate === undefined ? ["sign"] : ["attest", "--type", TYPES[type], "--predicate", predicate];
    await execute("cosign", [...what, ...this.signs, reference]);
    await this.verify(reference, type);
  }

  private verify(reference: string, type: Attestation): Promise<unknown> {
    return execute("cosign", ["verify-attestation", "--type", TYPES[type], ...this.verifies, reference]);
  }
}

/** Whether a signing config names a transparency log. */
async function namesLog(path: string): Promise<boolean> {
  const { rekorTlogUrls = [] } = JSON.parse(await readFile(path, "utf8")) as { rekorTlogUrls?: readonly unknown[] };
  return rekorTlogUrls.length > 0;
}
