import { podFromObject } from "../../cni/api-objects";
import { SETTING_PREFIX } from "../../cni/contract";
import { SETTINGS } from "../../cni/decide";
import { extraLookup } from "../../cni/evidence";
import { PROXY } from "../../cni/pod";
import type { RedirectOptions } from "../../cni/redirect/options";
import { nearest } from "../../helm/read";
import { isUnchained, NOT_REDIRECTED } from "../check/causes";
import { type Evidence, nameOf, type PodDecision } from "./evidence";

function addressNotes({ pod }: Evidence, { ipv6, ...options }: RedirectOptions): readonly string[] {
  if (ipv6) return [];
  const addresses = (pod.status?.podIPs ?? []).flatMap(({ ip }) => (ip?.includes(":") ? [ip] : []));
  const idle = [...options.skipInboundSubnets, ...options.skipOutboundSubnets].filter(({ family }) => family === "ip6");
  return [
    ...addresses.map(
      (ip) => `it has the IPv6 address ${ip}, and connections over IPv6 bypass the proxy: set disableIPv6 to false`,
    ),
    ...idle.map(({ text }) => `${text} has no effect while the rules are for IPv4 only: set disableIPv6 to false`),
  ];
}

const NATIVE_SIDECAR = `${SETTING_PREFIX}proxy-enable-native-sidecar`;

/** The setting that was probably meant by an annotation; undefined if it is one, or is not Linkerd's. */
function meantBy(key: string): string | undefined {
  const [name = "", prefix = ""] = key.split("/").reverse();
  const settings = Object.keys(SETTINGS);
  if (settings.some((setting) => key === `${SETTING_PREFIX}${setting}`)) return undefined;
  if (prefix !== "" && !prefix.endsWith("linkerd.io")) return undefined;
  const meant = nearest(name, settings);
  return meant === undefined ? undefined : `${SETTING_PREFIX}${meant}`;
}

/** Notes about annotations of a pod and its namespace that look like a setting but are not, or have a newer name. */
function misspeltNotes({ pod, namespace }: Evidence): readonly string[] {
  const { namespace: space, name } = nameOf(pod);
  const owners = [
    [pod.metadata?.annotations, `pod ${space}/${name}`],
    [namespace?.metadata?.annotations, `namespace ${space}`],
  ] as const;
  return owners.flatMap(([annotations = {}, where]) =>
    Object.keys(annotations).flatMap((key) => {
      const meant = meantBy(key);
      if (meant !== undefined) return [`${key} on ${where} has no effect: did you mean ${meant}?`];
      const isFormer = /^config\.(?:alpha|beta)\.linkerd\.io\/proxy-enable-native-sidecar$/.test(key);
      return isFormer ? [`${key} on ${where} is deprecated: use ${NATIVE_SIDECAR}`] : [];
    }),
  );
}

function whyUnheard(isCopied: boolean, needed: ReturnType<typeof extraLookup>): string {
  if (needed === "apiServerPorts") return "a pod of the control plane is redirected by its own alone";
  if (!isCopied) return "the injector does not copy it: put it on the pod";
  return "the injector copied the namespace's settings when it made the pod: recreate the pod";
}

/** Annotations of a namespace that have no effect on a pod. */
function namespaceNotes(evidence: Evidence): readonly string[] {
  const name = nameOf(evidence.pod);
  const pod = podFromObject(name, evidence.pod);
  const needed = extraLookup(pod);
  if (needed === "namespace" && evidence.namespace === undefined) {
    return [`namespace ${name.namespace} is not known here: its annotations would count too`];
  }
  if (needed === "namespace") return [];
  const annotations = evidence.namespace?.metadata?.annotations ?? {};
  return Object.entries(SETTINGS).flatMap(([setting, { isCopied }]) => {
    const key = `${SETTING_PREFIX}${setting}`;
    const isUnheard = annotations[key]?.trim() && annotations[key] !== pod.annotations[key];
    return isUnheard ? [`${key} on namespace ${name.namespace} does not count: ${whyUnheard(isCopied, needed)}`] : [];
  });
}

function describe(outcome: PodDecision): string {
  return `${outcome.kind === "does not start" ? "it does not start" : `it is ${outcome.kind}`}: ${outcome.because}`;
}

/** Notes about a running pod, which may differ from a pod that starts now. */
function historyNotes({ pod, configuredAt, nri }: Evidence): readonly string[] {
  const name = `${nameOf(pod).namespace}/${nameOf(pod).name}`;
  const ended = `its linkerd-network-validator ended with code ${NOT_REDIRECTED}: ${name}`;
  const early = nri
    ? `${ended} was not redirected then. The NRI plugin of its node sets the rules in place, and the validator's next run passes: if it does not, see l5d-cni check`
    : `${ended} is not redirected now, since it started before the chain was complete: delete it, or switch repairController.enabled on`;
  const { startTime } = pod.status ?? {};
  const isOlder =
    startTime !== undefined && configuredAt !== undefined && Date.parse(startTime) < Date.parse(configuredAt);
  return [
    ...(isUnchained({ ...pod, metadata: pod.metadata ?? {} }) ? [early] : []),
    ...(isOlder
      ? [
          `it started at ${startTime}, before the ConfigMap was last written (${configuredAt}): it may be redirected by another configuration, or not at all: delete it so that it starts again`,
        ]
      : []),
  ];
}

/** Linkerd's containers, which are designed for this. */
const LINKERDS = /^linkerd-/;

/** Containers whose traffic is not redirected, because they run with the proxy's user or group. */
function proxysUserNotes({ pod: { spec = {} } }: Evidence, { proxyUid, proxyGid }: RedirectOptions): readonly string[] {
  if (proxyUid === undefined && proxyGid === undefined) {
    return [
      `no user is excepted, since an ID below 1 counts as unset: the proxy's own connections come back to it: set ${SETTING_PREFIX}proxy-uid to the proxy's user`,
    ];
  }
  const usual = spec.securityContext ?? {};
  const own = (spec.containers ?? []).filter(({ name }) => !LINKERDS.test(name));
  return own.flatMap(({ name, securityContext = {} }) => {
    const user = securityContext.runAsUser ?? usual.runAsUser;
    const group = securityContext.runAsGroup ?? usual.runAsGroup;
    const as = [
      ...(user !== undefined && user === proxyUid ? [`user ${user}`] : []),
      ...(group !== undefined && group === proxyGid ? [`group ${group}`] : []),
    ];
    if (as.length === 0) return [];
    const field = user === proxyUid ? "runAsUser" : "runAsGroup";
    return [
      `container ${name} runs as ${as.join(" and ")}, as the proxy does: its outbound traffic bypasses the mesh: give it another ${field}`,
    ];
  });
}

/** Init containers that run before anything listens on the proxy's ports. */
function earlyNotes({ pod: { spec = {} } }: Evidence, { proxyUid }: RedirectOptions): readonly string[] {
  const all = spec.initContainers ?? [];
  const proxy = all.findIndex(({ name }) => name === PROXY);
  const early = (proxy < 0 ? all : all.slice(0, proxy)).filter(({ name, securityContext }) => {
    const user = securityContext?.runAsUser ?? spec.securityContext?.runAsUser;
    return !LINKERDS.test(name) && (user === undefined || user !== proxyUid);
  });
  if (early.length === 0) return [];
  const names = early.map(({ name }) => name).join(", ");
  const [what, they] = early.length === 1 ? ["init container", "it runs"] : ["init containers", "they run"];
  const order =
    proxy < 0 ? `make the proxy a native sidecar (${NATIVE_SIDECAR}: "true")` : "put it behind linkerd-proxy";
  const user = proxyUid === undefined ? "" : `, run it as user ${proxyUid}`;
  return [
    `${what} ${names}: ${they} before the proxy, and connections are refused then: if it needs the network, ${order}${user}, or name its ports in ${SETTING_PREFIX}skip-outbound-ports`,
  ];
}

/** Further notes for the user. @param without the outcome if the runtime does not pass annotations */
export function notesOf(evidence: Evidence, outcome: PodDecision, without: PodDecision): readonly string[] {
  return [
    ...(outcome.kind === "left alone" ? [] : historyNotes(evidence)),
    ...(evidence.configMap === undefined && outcome.kind !== "left alone"
      ? ["there is no ConfigMap linkerd-cni-config here: the chart's defaults apply"]
      : []),
    ...(outcome.kind === "redirected"
      ? [
          ...proxysUserNotes(evidence, outcome.options),
          ...earlyNotes(evidence, outcome.options),
          ...misspeltNotes(evidence),
          ...namespaceNotes(evidence),
          ...addressNotes(evidence, outcome.options),
        ]
      : []),
    ...(outcome.kind === without.kind
      ? []
      : [`if the runtime does not pass annotations (containerd before 1.5, CRI-O before 1.29), ${describe(without)}`]),
  ];
}
