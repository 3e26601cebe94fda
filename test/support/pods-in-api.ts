/** Pods in a real API server, with the chart's rights for the controllers, and no kubelet that would touch them. */
import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { meshedPod, ownedBy } from "./meshed-pod";
import { RealApi } from "./real-api";

/** API path at which a kind of the chart's is created. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  ClusterRole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
  MutatingAdmissionPolicy: "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies",
  MutatingAdmissionPolicyBinding: "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings",
};

const LINKERD = "linkerd";
const SERVICE = "linkerd-proxy-injector";
/** As Linkerd's chart makes it with its defaults; it is asked about no pod of these tests. */
const INJECTOR = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "MutatingWebhookConfiguration",
  metadata: {
    name: "linkerd-proxy-injector-webhook-config",
    labels: { "linkerd.io/control-plane-component": "proxy-injector" },
  },
  webhooks: [
    {
      name: "linkerd-proxy-injector.linkerd.io",
      clientConfig: { service: { name: SERVICE, namespace: LINKERD, path: "/" } },
      failurePolicy: "Ignore",
      objectSelector: { matchLabels: { "test/injected": "true" } },
      rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
    },
  ],
};

interface Event {
  readonly reason: string;
  readonly action: string;
  readonly eventTime: string;
  readonly regarding: { readonly name: string };
}

interface Options {
  /** The owner's name. @default its own */
  readonly owner?: string;
  /** The owner's kind. @default "ReplicaSet" */
  readonly kind?: string;
  readonly spec?: object;
  /** @default those of a meshed pod */
  readonly labels?: Readonly<Record<string, string>>;
}

export class PodsInApi {
  private constructor(readonly api: RealApi) {}

  /** An API server on which the controllers have the chart's rights. */
  static async start(): Promise<PodsInApi> {
    const api = await RealApi.start("system:serviceaccount:linkerd-cni:linkerd-cni");
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", {
      rbac: { minimal: true },
      repairController: { enabled: true },
      nodeTaint: { enabled: true, admissionPolicy: "v1beta1" },
    });
    for (const object of chart.toJson() as { kind: string }[]) {
      const path = COLLECTIONS[object.kind];
      if (path !== undefined) await api.json({ method: "POST", path, body: object });
    }
    const cluster = new PodsInApi(api);
    await cluster.namespace(LINKERD);
    await api.create(INJECTOR);
    await cluster.setInjectorReady(true);
    return cluster;
  }

  /** Creates or changes the endpoint of Linkerd's injector. */
  async setInjectorReady(isReady: boolean): Promise<void> {
    const body = {
      metadata: { name: SERVICE, labels: { "kubernetes.io/service-name": SERVICE } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["192.0.2.1"], conditions: { ready: isReady } }],
      ports: [{ port: 8443 }],
    };
    const path = `/apis/discovery.k8s.io/v1/namespaces/${LINKERD}/endpointslices/${SERVICE}?fieldManager=test`;
    const typed = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", ...body };
    await this.api.json({ method: "PATCH", path, contentType: "application/apply-patch+yaml", body: typed });
  }

  async namespace(name: string): Promise<PodsInNamespace> {
    await this.api.json({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } });
    return new PodsInNamespace(this.api, name);
  }
}

export class PodsInNamespace {
  constructor(
    private readonly api: RealApi,
    private readonly name: string,
  ) {}

  private get path(): string {
    return `/api/v1/namespaces/${this.name}/pods`;
  }

  /** Creates a pod, and gives it the status that a kubelet would. */
  async start(name: string, status: object, { owner = name, kind, spec = {}, labels }: Options = {}): Promise<void> {
    const owned = { ...ownedBy(owner, kind), ...(labels && { labels }) };
    const { metadata, spec: base } = meshedPod(name, { metadata: owned, spec });
    const { uid: _, ...given } = metadata;
    const containers = (list: unknown) => (list as { name: string }[]).map((each) => ({ ...each, image: "none" }));
    const body = {
      metadata: { ...given, namespace: this.name },
      spec: {
        ...base,
        containers: containers(base["containers"]),
        initContainers: containers(base["initContainers"]),
      },
    };
    await this.api.json({ method: "POST", path: this.path, body });
    await this.say(name, status);
  }

  private async say(name: string, status: object): Promise<void> {
    const filled = JSON.parse(JSON.stringify(status), (_, value) =>
      typeof value === "object" && value !== null && "name" in value
        ? { image: "none", imageID: "none", ready: false, restartCount: 1, ...value }
        : value,
    );
    const contentType = "application/merge-patch+json";
    await this.api.json({
      method: "PATCH",
      path: `${this.path}/${name}/status`,
      body: { status: filled },
      contentType,
    });
  }

  /** Names of the pods that are there. */
  async present(): Promise<readonly string[]> {
    const { items } = await this.api.json<{ items: { metadata: { name: string } }[] }>({ path: this.path });
    return items.map(({ metadata }) => metadata.name);
  }

  async events(): Promise<readonly Event[]> {
    const path = `/apis/events.k8s.io/v1/namespaces/${this.name}/events`;
    return (await this.api.json<{ items: Event[] }>({ path })).items;
  }

  /** Names of the pods that Events of a reason are about. */
  async told(reason: string): Promise<readonly string[]> {
    return (await this.events()).filter((event) => event.reason === reason).map(({ regarding }) => regarding.name);
  }
}
