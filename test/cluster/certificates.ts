import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { authority, certificate } from "../../system/certificates.testing";
import { kubeconfig as kubeconfigFor } from "../support/kubeconfig";
import { API_PORT, API_SERVICE, NODE } from "./addresses";
import { paths } from "./paths";

/** Users of the API server, and the groups that give them their rights. */
const USERS = {
  admin: { name: "admin", groups: ["system:masters"] },
  "controller-manager": { name: "system:kube-controller-manager", groups: ["system:masters"] },
  scheduler: { name: "system:kube-scheduler", groups: [] },
  kubelet: { name: `system:node:${NODE.name}`, groups: ["system:nodes"] },
} as const;

export const credentials = {
  /** Of the authority that clients of the API server trust. */
  authority: join(paths.certificates, "authority.crt"),
  /** The API server's own. Linkerd's policy controller refuses a server whose certificate is an authority's. */
  certificate: join(paths.certificates, "api-server.crt"),
  key: join(paths.certificates, "api-server.key"),
  /** Users by token, as the API server reads them. */
  tokens: join(paths.certificates, "tokens.csv"),
  /** Signs service account tokens; the public half checks them. */
  accountsKey: join(paths.certificates, "service-accounts.key"),
  accountsPublicKey: join(paths.certificates, "service-accounts.pub"),
} as const;

export const kubeconfig = (user: keyof typeof USERS) => join(paths.kubeconfigs, user);

/** Makes everything by which the cluster's parts know each other. */
export async function makeCredentials(): Promise<void> {
  for (const directory of [paths.certificates, paths.kubeconfigs]) {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  }
  const names = [NODE.address, API_SERVICE, "127.0.0.1", "kubernetes", "kubernetes.default.svc"];
  // It is kept for as long as the cluster's files.
  const by = authority("test cluster", { toDay: 365 });
  const { cert, key } = certificate({ subject: "kube-apiserver", by, names, toDay: 365 });
  await writeFile(credentials.authority, by.cert);
  await writeFile(credentials.certificate, cert);
  await writeFile(credentials.key, key, { mode: 0o600 });
  await makeAccountsKey();
  const lines: string[] = [];
  for (const [file, { name, groups }] of Object.entries(USERS)) {
    const token = randomBytes(16).toString("hex");
    lines.push(`${token},${name},${name},"${groups.join(",")}"`);
    const text = kubeconfigFor({ host: NODE.address, port: API_PORT, ca: by.cert, token });
    await writeFile(join(paths.kubeconfigs, file), text, { mode: 0o600 });
  }
  await writeFile(credentials.tokens, `${lines.join("\n")}\n`, { mode: 0o600 });
}

/** Makes a new key for service accounts: tokens signed with an older one are refused once the API server has read it. */
export async function makeAccountsKey(): Promise<void> {
  const { privateKey, publicKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  await writeFile(credentials.accountsKey, privateKey, { mode: 0o600 });
  await writeFile(credentials.accountsPublicKey, publicKey);
}
