/** Linkerd's own plugin and installer, with the rights of its chart. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kubeconfig } from "../support/kubeconfig";
import { LINKERDS_STANZA } from "../support/linkerd-stanza";
import type { RealApi } from "../support/real-api";
import { NAMESPACE } from "./nodes";

/** Its account, in the namespace of ours. */
export const LINKERDS = "linkerds";
const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const DAY_SECONDS = 24 * 60 * 60;

/** The installer wants its service account under /run/secrets, so it gets a /run of its own. */
const RUN = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
cp -r "$1" /run/secrets/kubernetes.io/serviceaccount && exec "$2"`;

/** Creates the account. @returns a token of it, for a day */
export async function linkerdsToken(api: RealApi): Promise<string> {
  const metadata = { name: LINKERDS, namespace: NAMESPACE };
  const name = "linkerds";
  const rules = [
    { apiGroups: [""], resources: ["pods", "nodes", "namespaces", "services"], verbs: ["list", "get", "watch"] },
  ];
  const rights = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name } };
  await api.create(
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { ...rights, kind: "ClusterRole", rules } as Parameters<RealApi["create"]>[0],
    {
      ...rights,
      kind: "ClusterRoleBinding",
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    } as Parameters<RealApi["create"]>[0],
  );
  const { status } = await api.json<{ status: { token: string } }>({
    method: "POST",
    path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${LINKERDS}/token`,
    body: { spec: { expirationSeconds: DAY_SECONDS } },
  });
  return status.token;
}

/** The configuration that its installer writes for its plugin. @param file where the kubeconfig is written */
export function linkerdsStanza(api: RealApi, token: string, file: string): object {
  writeFileSync(file, kubeconfig({ ...api.admin, token }));
  return { ...LINKERDS_STANZA, kubernetes: { kubeconfig: file } };
}

/** A node with its installer. */
export class LinkerdsNode {
  private readonly directory: string;
  private readonly child: ChildProcess;

  constructor(name: string, place: string, { program, image, api, token }: LinkerdsInstaller) {
    this.directory = join(place, name);
    for (const each of ["", "net.d", "bin", "account"]) mkdirSync(join(this.directory, each));
    writeFileSync(this.list, LIST);
    const account = { token, "ca.crt": api.admin.ca ?? "", namespace: NAMESPACE };
    for (const [file, text] of Object.entries(account)) writeFileSync(join(this.directory, "account", file), text);
    const args = ["--mount", "sh", "-c", RUN, "sh", join(this.directory, "account"), program];
    this.child = spawn("unshare", args, {
      stdio: "ignore",
      detached: true,
      env: {
        PATH: process.env["PATH"],
        CONTAINER_MOUNT_PREFIX: this.directory,
        DEST_CNI_NET_DIR: "/net.d",
        DEST_CNI_BIN_DIR: "/bin",
        CONTAINER_CNI_BIN_DIR: image,
        KUBERNETES_SERVICE_HOST: api.admin.host,
        KUBERNETES_SERVICE_PORT: String(api.admin.port),
        CNI_NETWORK_CONFIG: JSON.stringify(LINKERDS_STANZA),
      },
    });
  }

  private get list(): string {
    return join(this.directory, "net.d", "10-k.conflist");
  }

  /** Whether its plugin is chained. @throws if the installer has ended */
  get isInstalled(): boolean {
    if (this.hasEnded) throw new Error("linkerd's installer has ended");
    return readFileSync(this.list, "utf8").includes('"linkerd-cni"');
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  kill(): void {
    if (!this.hasEnded && this.child.pid !== undefined) process.kill(-this.child.pid, "SIGKILL");
  }
}

interface LinkerdsInstaller {
  readonly program: string;
  /** Directory that holds a plugin, as the image does. */
  readonly image: string;
  readonly api: RealApi;
  readonly token: string;
}
