import { API_PORT, NODE, POD_NETWORK, SERVICE_NETWORK } from "./addresses";
import { credentials, kubeconfig } from "./certificates";
import type { Machine } from "./machine";

/** A long-running program of the cluster. */
export interface Daemon {
  readonly name: string;
  readonly command: readonly string[];
  /** Command or call that succeeds once the daemon is of use. */
  readonly ready?: readonly string[] | ((machine: Machine) => Promise<unknown>);
}

type Flags = Readonly<Record<string, string | number | boolean>>;

const command = (program: string, flags: Flags) => [
  program,
  ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
];

const ETCD = "http://127.0.0.1:2379";
const kubectl = (...args: string[]) => ["kubectl", ...args, "--request-timeout=2s"];

const etcd: Daemon = {
  name: "etcd",
  command: command("etcd", {
    "data-dir": "/var/lib/etcd",
    "listen-client-urls": ETCD,
    "advertise-client-urls": ETCD,
    "listen-peer-urls": "http://127.0.0.1:2380",
    // A test's cluster need not survive a power cut.
    "unsafe-no-fsync": true,
  }),
};

export const apiServer: Daemon = {
  name: "kube-apiserver",
  command: command("kube-apiserver", {
    "etcd-servers": ETCD,
    "advertise-address": NODE.address,
    "bind-address": "0.0.0.0",
    "secure-port": API_PORT,
    "service-cluster-ip-range": SERVICE_NETWORK,
    "tls-cert-file": credentials.certificate,
    "tls-private-key-file": credentials.key,
    "token-auth-file": credentials.tokens,
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-account-key-file": credentials.accountsPublicKey,
    "service-account-signing-key-file": credentials.accountsKey,
    // No API is aggregated, but Linkerd requires the authority for it.
    "requestheader-client-ca-file": credentials.authority,
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "allow-privileged": true,
    "kubelet-preferred-address-types": "InternalIP",
    // Webhooks are called at their pods' addresses: no kube-proxy is needed for them.
    "enable-aggregator-routing": true,
    // What the policy that requires the NRI plugin is made of.
    "feature-gates": "MutatingAdmissionPolicy=true",
    "runtime-config": "admissionregistration.k8s.io/v1beta1=true",
  }),
  ready: kubectl("get", "--raw", "/readyz"),
};

const controllerManager: Daemon = {
  name: "kube-controller-manager",
  command: command("kube-controller-manager", {
    kubeconfig: kubeconfig("controller-manager"),
    "root-ca-file": credentials.authority,
    "service-account-private-key-file": credentials.accountsKey,
    "cluster-cidr": POD_NETWORK,
    "leader-elect": false,
    "use-service-account-credentials": false,
    "kube-api-qps": 300,
    "kube-api-burst": 600,
    "node-monitor-period": "1s",
  }),
  ready: kubectl("get", "serviceaccount", "default", "--namespace=default"),
};

const scheduler: Daemon = {
  name: "kube-scheduler",
  command: command("kube-scheduler", { kubeconfig: kubeconfig("scheduler"), "leader-elect": false }),
};

/** In the order in which they start. */
export const controlPlane: readonly Daemon[] = [etcd, apiServer, controllerManager, scheduler];
