import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";

interface Policy {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly privileged: boolean;
    readonly allowPrivilegeEscalation: boolean;
    readonly readOnlyRootFilesystem: boolean;
    readonly allowedCapabilities?: readonly string[];
    readonly hostNetwork: boolean;
    readonly hostPorts?: readonly { readonly min: number; readonly max: number }[];
    readonly volumes: readonly string[];
  };
}

interface Container {
  readonly ports?: readonly { readonly containerPort: number }[];
  readonly securityContext?: {
    readonly allowPrivilegeEscalation?: boolean;
    readonly capabilities?: { readonly add?: readonly string[] };
    readonly privileged?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly seccompProfile?: { readonly type: string };
  };
}

interface Pod {
  readonly hostNetwork?: boolean;
  readonly securityContext?: Container["securityContext"];
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string }[];
}

type Context = NonNullable<Container["securityContext"]>;

const PROFILES = "seccomp.security.alpha.kubernetes.io/allowedProfileNames";

/** Fields that a policy forbids if a container requests more; it sets absent ones. */
const rules: Readonly<Record<string, (asked: Context, { spec, metadata }: Policy) => boolean>> = {
  privileged: ({ privileged }, { spec }) => privileged === true && !spec.privileged,
  escalation: (asked, { spec }) => asked.allowPrivilegeEscalation === true && !spec.allowPrivilegeEscalation,
  "writable root": (asked, { spec }) => asked.readOnlyRootFilesystem === false && spec.readOnlyRootFilesystem,
  capability: ({ capabilities }, { spec }) =>
    (capabilities?.add ?? []).some((name) => !spec.allowedCapabilities?.includes(name)),
  seccomp: ({ seccompProfile }, { metadata }) =>
    seccompProfile?.type === "RuntimeDefault" &&
    metadata.annotations?.[PROFILES]?.split(",").includes("runtime/default") !== true,
};

/** On the host network a container's port is the node's. */
function refusedPorts({ hostPorts = [] }: Policy["spec"], container: Container): readonly number[] {
  const ports = (container.ports ?? []).map(({ containerPort }) => containerPort);
  return ports.filter((port) => !hostPorts.some(({ min, max }) => min <= port && port <= max));
}

function refusedOf(policy: Policy, pod: Pod, container: Container): readonly unknown[] {
  const asked = { ...pod.securityContext, ...container.securityContext };
  const broken = Object.entries(rules).flatMap(([name, breaks]) => (breaks(asked, policy) ? [name] : []));
  return [...broken, ...(pod.hostNetwork === true ? refusedPorts(policy.spec, container) : [])];
}

/** The reason for which the admission of a Kubernetes before 1.25 would refuse a pod under a policy. */
function refused(policy: Policy, pod: Pod): readonly unknown[] {
  const { hostNetwork, volumes } = policy.spec;
  const kinds = pod.volumes.flatMap((volume) => Object.keys(volume).filter((key) => key !== "name"));
  return [
    ...(pod.hostNetwork === true && !hostNetwork ? ["hostNetwork"] : []),
    // The token of the service account.
    ...[...kinds, "projected", "secret"].filter((kind) => !volumes.includes(kind)),
    ...pod.containers.flatMap((container) => refusedOf(policy, pod, container)),
  ];
}

function made(props: LinkerdCniProps, nri = false): { readonly policy: Policy; readonly pod: Pod } {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", { enablePSP: true, ...props });
  const objects = chart.toJson() as { kind: string; metadata: { name: string } }[];
  const find = (wanted: string) =>
    objects.find(({ kind, metadata: { name } }) => kind === wanted && name.endsWith("-nri") === nri);
  const policy = find("PodSecurityPolicy") as unknown as Policy;
  const daemonSet = find("DaemonSet") as unknown as {
    spec: { template: { spec: Pod } };
  };
  return { policy, pod: daemonSet.spec.template.spec };
}

const repaired = { repairController: { enabled: true } };

test.each<LinkerdCniProps>([
  {},
  repaired,
  { repairController: { enabled: true, enableSecurityContext: false } },
  { privileged: true, pluginLog: false },
  { hostNetwork: true },
  { hostNetwork: true, healthPort: 9000, ...repaired },
  { hostNetwork: true, healthPort: 0, ...repaired },
  { hostNetwork: true, healthPort: 0 },
])("with %j the policy allows the chart's pods", (props) => {
  const { policy, pod } = made(props);
  expect(refused(policy, pod)).toEqual([]);
});

test("it allows no more than that: other ports, privileges and the host network are refused", () => {
  const { policy } = made({});
  expect(refused(policy, made({ hostNetwork: true, privileged: true }).pod)).toEqual([
    "hostNetwork",
    "privileged",
    "escalation",
    9991,
  ]);
  const { policy: onHost } = made({ hostNetwork: true });
  expect(refused(onHost, made({ hostNetwork: true, ...repaired }).pod)).toEqual([9990]);
});

test("the NRI plugin's pods have their own policy, and the installer's does not allow them", () => {
  const props: LinkerdCniProps = { nri: { enabled: true }, hostNetwork: true };
  const { policy, pod } = made(props, true);
  expect(refused(policy, pod)).toEqual([]);
  expect(refused(made(props).policy, pod)).toEqual(["capability"]);
  expect(refused(policy, made(props).pod)).toEqual(["hostNetwork", "capability", 9991]);
});
