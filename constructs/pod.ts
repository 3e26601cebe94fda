import type { k8s } from "cdk8s-plus-27";
import {
  AdminPath,
  type Chaining,
  CNI_CACHE_VOLUME,
  CNI_NAME,
  ConfigMapKey,
  Container as ContainerName,
  InstallerVariable,
  Label,
  MOUNT_PREFIX,
  NodePath,
  PodVariable,
  REPAIR_PORT,
  RepairFlag,
  RepairVariable,
} from "../cni/contract";
import {
  and,
  assert,
  concat,
  eq,
  type Input,
  int,
  items,
  matches,
  not,
  or,
  type Part,
  type Parts,
  present,
  type Refs,
  spread,
  type Templated,
  text,
  when,
} from "../helm/index";
import {
  configured,
  extraEnvOf,
  fromField,
  imageOf,
  isServed,
  probesOf,
  programCommand,
  RESTRICTED,
  resourcesOf,
} from "./container";
import { PLATFORM_NAMES, PLATFORMS } from "./platforms";
import type { NodeTaint } from "./taint";
import type { Values } from "./values";

type Container = Part<k8s.Container>;
type Mounts = readonly (Templated<k8s.VolumeMount> | undefined)[];
type Volumes = readonly (Templated<k8s.Volume> | undefined)[];
type Env = readonly (Templated<k8s.EnvVar> | undefined)[];

/**
 * Directories of the node may belong to another user (for example kubespray's, and those unpacked from some archives of
 * CNI plugins); without this capability user 0 cannot write there. With it, the kernel also lets the installer create a
 * hard link to such a user's file, so FOWNER is not needed. CHOWN is needed only while the file is chained, and only
 * for an owner who is not root and writes it in place.
 */
export const INSTALLER_CAPABILITIES = ["DAC_OVERRIDE"] as const;

/** The CNI directories of the nodes. */
export interface Directories {
  readonly netDir: Input<string>;
  readonly binDir: Input<string>;
}

/** If both directories are the same, it is mounted once. */
const netDirApart = ({ binDir, netDir }: Directories): Input<boolean> => not(eq(binDir, netDir));

const withAuxiliary = PLATFORM_NAMES.filter((name) => PLATFORMS[name].chaining !== undefined);
const hasAuxiliary = ({ platform }: Refs<Values>): Input<boolean> =>
  or(...withAuxiliary.map((name) => eq<string>(platform, name)));

/** Whether Multus calls the plugin by its auxiliary chain. */
const isAuxiliary = (values: Refs<Values>): Input<boolean> => {
  const given = (chaining: Chaining) => eq<string>(values.chaining, chaining);
  return and(values.chained, or(given("auxiliary"), and(given("auto"), hasAuxiliary(values))));
};

function mounts(values: Refs<Values>, directories: Directories): Mounts {
  return [
    { name: "cni-bin-dir", mountPath: concat(MOUNT_PREFIX, directories.binDir) },
    when(netDirApart(directories), { name: "cni-net-dir", mountPath: concat(MOUNT_PREFIX, directories.netDir) }),
    when(isAuxiliary(values), {
      name: "auxiliary-chain-dir",
      mountPath: concat(MOUNT_PREFIX, values.multus.auxiliaryChainDir),
    }),
    { name: "linkerd-run-dir", mountPath: `${MOUNT_PREFIX}${NodePath.runDir}` },
    { name: CNI_CACHE_VOLUME, mountPath: `${MOUNT_PREFIX}${NodePath.cniCacheDir}`, readOnly: true },
    { name: "linkerd-tmp-dir", mountPath: "/tmp" },
  ];
}

function volumes(values: Refs<Values>, directories: Directories): Volumes {
  return [
    { name: "cni-bin-dir", hostPath: { path: directories.binDir } },
    when(netDirApart(directories), { name: "cni-net-dir", hostPath: { path: directories.netDir } }),
    // It may be in /run, which is empty after a boot.
    when(isAuxiliary(values), {
      name: "auxiliary-chain-dir",
      hostPath: { path: values.multus.auxiliaryChainDir, type: "DirectoryOrCreate" },
    }),
    { name: "linkerd-run-dir", hostPath: { path: values.runDir, type: "DirectoryOrCreate" } },
    // It exists on every node that has started a pod with CNI.
    { name: CNI_CACHE_VOLUME, hostPath: { path: NodePath.cniCacheDir, type: "DirectoryOrCreate" } },
    { name: "linkerd-tmp-dir", emptyDir: {} },
  ];
}

/** The level of the installer and the NRI plugin, which map levels above error to error. */
export function logLevelOf({ logLevel }: Refs<Values>): Input<string> {
  const most = when(matches(logLevel, "^(fatal|panic)$"), "error", logLevel);
  return when(eq<string>(logLevel, "warning"), "warn", most) as Input<string>;
}

function installerEnv(values: Refs<Values>, taint: NodeTaint): Env {
  return [
    configured(InstallerVariable.netDir, ConfigMapKey.netDir),
    configured(InstallerVariable.binDir, ConfigMapKey.binDir),
    configured(InstallerVariable.stanza, ConfigMapKey.stanza),
    when(not(values.chained), { name: InstallerVariable.chained, value: "false" }),
    when(or(isAuxiliary(values), not(eq<string>(values.chaining, "auto"))), {
      name: InstallerVariable.chaining,
      value: when(isAuxiliary(values), "auxiliary", values.chaining),
    }),
    when(values.multipleCNIBinDirs, { name: InstallerVariable.multipleBinDirs, value: "true" }),
    when(isAuxiliary(values), {
      name: InstallerVariable.auxiliaryDir,
      value: values.multus.auxiliaryChainDir,
    }),
    { name: InstallerVariable.healthPort, value: text(values.healthPort) },
    { name: InstallerVariable.logLevel, value: logLevelOf(values) },
    when(not(eq<string>(values.uninstallOnStop, "auto")), {
      name: InstallerVariable.stopPolicy,
      value: values.uninstallOnStop,
    }),
    when(not(values.pluginLog), { name: InstallerVariable.showsPluginLog, value: "false" }),
    when(values.nri.enabled, { name: InstallerVariable.nriEvents, value: "true" }),
    ...taint.env,
    fromField(PodVariable.nodeName, "spec.nodeName"),
    fromField(PodVariable.podName, "metadata.name"),
    fromField(PodVariable.podNamespace, "metadata.namespace"),
    fromField(PodVariable.podUid, "metadata.uid"),
    ...extraEnvOf(values),
  ];
}

const confined = PLATFORM_NAMES.filter((name) => PLATFORMS[name].seLinuxOptions !== undefined);

/** The SELinux context of containers that change the node: the given one, else the platform's. */
export function seLinuxOptionsOf({
  platform,
  seLinuxOptions,
}: Refs<Values>): Templated<k8s.SeLinuxOptions> | undefined {
  const preset = confined.reduce<unknown>(
    (otherwise, name) => when(eq<string>(platform, name), PLATFORMS[name].seLinuxOptions, otherwise),
    undefined,
  );
  return (
    seLinuxOptions === undefined ? preset : when(seLinuxOptions, seLinuxOptions, preset)
  ) as Templated<k8s.SeLinuxOptions>;
}

/** The container that installs the plugin on the node. */
function installer(values: Refs<Values>, directories: Directories, taint: NodeTaint): Container {
  const port = values.healthPort;
  const probed = isServed(port);
  const probes = probesOf(port);
  return {
    name: ContainerName.installer,
    ...imageOf(values),
    command: programCommand("install"),
    env: installerEnv(values, taint),
    ports: when(probed, [{ name: "health", containerPort: port, protocol: "TCP" }]),
    livenessProbe: when(probed, probes.livenessProbe),
    readinessProbe: when(probed, probes.readinessProbe),
    resources: resourcesOf(values.resources),
    securityContext: {
      ...RESTRICTED,
      allowPrivilegeEscalation: values.privileged,
      capabilities: { drop: ["ALL"], add: INSTALLER_CAPABILITIES },
      privileged: values.privileged,
      runAsUser: 0,
      seLinuxOptions: seLinuxOptionsOf(values),
    },
    volumeMounts: mounts(values, directories),
  };
}

/** The repair controller's port, which the installer in the same pod must not use. */
function ownPort({ healthPort, repairController }: Refs<Values>): Input<number> {
  const taken = and(repairController.enabled, eq(text(healthPort), String(REPAIR_PORT)));
  return assert(not(taken), `healthPort: ${REPAIR_PORT} is the repair controller's own port`, REPAIR_PORT);
}

/** The container that replaces pods that started before the plugin was installed. */
export function repairController(values: Refs<Values>): Container {
  const { repairController: repair } = values;
  return {
    name: ContainerName.repairController,
    ...imageOf(values),
    command: programCommand("repair"),
    args: [
      `--${RepairFlag.adminAddress}=:${REPAIR_PORT}`,
      concat(`--${RepairFlag.logLevel}=`, repair.logLevel),
      concat(`--${RepairFlag.logFormat}=`, repair.logFormat),
      when(
        isServed(values.healthPort),
        concat(`--${RepairFlag.installerReady}=http://127.0.0.1:`, text(values.healthPort), AdminPath.ready),
        `--${RepairFlag.installerReady}=`,
      ),
      concat(`--${RepairFlag.deletionsPerSecond}=`, text(repair.deletionsPerSecond)),
      concat(`--${RepairFlag.deletionBurst}=`, text(repair.deletionBurst)),
      when(repair.deleteUnowned, `--${RepairFlag.deleteUnowned}=true`),
      when(values.nri.enabled, `--${RepairFlag.waitForNri}=true`),
    ],
    env: [
      // The expected redirect, to detect pods without it.
      configured(InstallerVariable.stanza, ConfigMapKey.stanza),
      fromField(RepairVariable.nodeName, "spec.nodeName"),
      fromField(RepairVariable.podName, "metadata.name"),
      ...extraEnvOf(values),
    ],
    // The name that PodMonitors for linkerd's chart use.
    ports: [{ name: "repair-admin", containerPort: ownPort(values), protocol: "TCP" }],
    livenessProbe: { httpGet: { path: AdminPath.live, port: REPAIR_PORT } },
    readinessProbe: {
      httpGet: { path: AdminPath.ready, port: REPAIR_PORT },
      failureThreshold: 7,
      initialDelaySeconds: 10,
    },
    resources: resourcesOf(repair.resources),
    securityContext: when(repair.enableSecurityContext, {
      ...RESTRICTED,
      runAsNonRoot: true,
      runAsUser: 65532,
    }),
  };
}

/** A number, or a percentage. */
const shareOf = (value: Input<string>) => when(matches(value, "%"), value, int(value));

const NONE = "^0%?$";

const SOME = "^0*[1-9][0-9]*%?$";

const BOTH =
  "updateStrategy.rollingUpdate: maxSurge and maxUnavailable are both set, and Kubernetes allows only one of them: set the " +
  "other to 0, or leave it out";

const NEITHER =
  "updateStrategy.rollingUpdate: maxSurge and maxUnavailable are both 0, so that no pod could be replaced: set one of " +
  "them to 1, or leave one out";

/**
 * Kubernetes 1.34 accepts such a DaemonSet, but its update never ends, since two pods cannot have the same ports of a
 * node. Later versions may refuse it (kubernetes/kubernetes#106417).
 */
const SURGE_WITH_HOST_NETWORK =
  "updateStrategy.rollingUpdate: with hostNetwork a new pod cannot start before the old one ends, since both need the " +
  "same ports: leave maxSurge and maxUnavailable out, or set maxSurge to 0 and maxUnavailable to 1";

/**
 * The update strategy. The API server accepts either surge or unavailability, so the default of each depends on the
 * other. With neither, the new pod starts first: a node without an installer could start pods without a redirect while
 * the plugin changes. On the host network the old pod ends first, because both need the same ports.
 */
export function updateStrategy(values: Refs<Values>) {
  const { updateStrategy, healthPort, hostNetwork, repairController } = values;
  const { type, rollingUpdate } = updateStrategy;
  const { maxSurge, maxUnavailable } = rollingUpdate;
  const isSurgeTold = not(eq<string>(maxSurge, ""));
  const isUnavailabilityTold = not(eq<string>(maxUnavailable, ""));
  const replacesFirst = or(
    matches(maxSurge, NONE),
    and(not(isSurgeTold), isUnavailabilityTold, not(matches(maxUnavailable, NONE))),
    and(not(isSurgeTold), not(isUnavailabilityTold), hostNetwork),
  );
  return {
    type,
    rollingUpdate: when(eq<string>(type, "RollingUpdate"), {
      maxSurge: assert(
        or(not(hostNetwork), replacesFirst, not(or(isServed(healthPort), repairController.enabled))),
        SURGE_WITH_HOST_NETWORK,
        when(isSurgeTold, shareOf(maxSurge), when(replacesFirst, 0, 1)) as Input<number>,
      ),
      maxUnavailable: assert(
        not(and(matches(maxSurge, NONE), matches(maxUnavailable, NONE))),
        NEITHER,
        assert(
          not(and(matches(maxSurge, SOME), matches(maxUnavailable, SOME))),
          BOTH,
          when(isUnavailabilityTold, shareOf(maxUnavailable), when(replacesFirst, 1, 0)) as Input<number>,
        ),
      ),
    }),
  } as Templated<k8s.DaemonSetUpdateStrategy>;
}

/** The nodes that have the plugin. */
export const nodesOf = ({ nodeSelector, nodeAffinity, affinity }: Refs<Values>) =>
  ({
    nodeSelector: { ...spread(nodeSelector), [Label.os]: "linux" },
    affinity: when(nodeAffinity, { ...spread(affinity), nodeAffinity }, present(affinity)),
  }) as Templated<Pick<k8s.PodSpec, "nodeSelector" | "affinity">>;

/** Scheduling and identity of pods, the same for the installer and the NRI plugin. */
export const placementOf = (values: Refs<Values>, taint: NodeTaint): Partial<Templated<k8s.PodSpec>> => ({
  terminationGracePeriodSeconds: values.terminationGracePeriodSeconds,
  ...nodesOf(values),
  tolerations: taint.tolerations(present(values.tolerations)) as Templated<k8s.PodSpec["tolerations"]>,
  priorityClassName: present(values.priorityClassName),
});

/** A pod spec in which the lists that users extend exist. */
export type PodParts = Omit<Part<k8s.PodSpec>, "containers" | "volumes"> & {
  readonly containers: Parts<k8s.Container>;
  readonly volumes: Parts<k8s.Volume>;
};

/** The DaemonSet's pods. */
export function podSpec(
  values: Refs<Values>,
  directories: Directories,
  securityContext: Templated<k8s.PodSecurityContext>,
  taint: NodeTaint,
): PodParts {
  return {
    serviceAccountName: CNI_NAME,
    automountServiceAccountToken: true,
    // The API server drops a false value: if it were set, every apply would see a difference.
    hostNetwork: when(values.hostNetwork, true),
    ...placementOf(values, taint),
    securityContext,
    initContainers: present(values.extraInitContainers),
    containers: [
      installer(values, directories, taint),
      when(values.repairController.enabled, repairController(values)),
    ],
    volumes: [...volumes(values, directories), ...items(present(values.extraVolumes) ?? [])] as PodParts["volumes"],
  };
}
