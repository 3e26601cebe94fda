import { Label } from "../cni/contract";
import type { LinkerdCniProps } from "../constructs";
import { MUTATING_POLICY_VERSIONS } from "../constructs/admission";
import type { Kubectl } from "./kubectl";
import { installed, type Manifest } from "./resources";

/** API groups that every cluster has in the versions that are installed; the core one has no name. */
const EVERYWHERE = ["", "apps", "rbac.authorization.k8s.io", "networking.k8s.io"];

/** The kinds of other groups, as kubectl names them. */
const ELSEWHERE = [
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
  "mutatingadmissionpolicies.admissionregistration.k8s.io",
  "validatingadmissionpolicybindings.admissionregistration.k8s.io",
  "validatingadmissionpolicies.admissionregistration.k8s.io",
  "podmonitors.monitoring.coreos.com",
  "prometheusrules.monitoring.coreos.com",
];

const on = { enabled: true };

/** Values with which the chart has all its optional objects. */
const EVERYTHING: LinkerdCniProps = {
  grafanaDashboard: on,
  networkPolicy: on,
  platform: "openshift",
  podMonitor: on,
  priorityClassName: "system-node-critical",
  prometheusRule: on,
  resourceQuota: { create: "always" },
};

const groupOf = ({ apiVersion }: Manifest): string =>
  apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";

const isEverywhere = (manifest: Manifest): boolean => EVERYWHERE.includes(groupOf(manifest));

const identity = ({ kind, metadata: { namespace = "", name } }: Manifest): string => `${kind}/${namespace}/${name}`;

/** Every object that values make, in the order of installation. */
function installable(namespace: string): readonly Manifest[] {
  const all = MUTATING_POLICY_VERSIONS.flatMap((admissionPolicy) =>
    installed(
      {
        ...EVERYTHING,
        namespaceUIDRange: { admissionPolicy },
        nodeTaint: { ...on, admissionPolicy },
        nri: { ...on, require: { admissionPolicy } },
      },
      namespace,
    ),
  );
  return [...new Map(all.map((manifest) => [identity(manifest), manifest])).values()];
}

/** Objects of kinds that only some clusters know. @throws a KubectlError */
export async function foundElsewhere(kubectl: Kubectl, namespace: string): Promise<readonly Manifest[]> {
  const known = await kubectl.kinds();
  const kind = ELSEWHERE.filter((name) => known.includes(name)).join(",");
  if (kind === "") return [];
  const selector = `${Label.cniResource}=true`;
  const found = await kubectl.list<Manifest>({ kind, namespace, selector });
  const ours = installable(namespace).map(identity);
  return found.filter((manifest) => ours.includes(identity(manifest)));
}

/**
 * Identifies for `kubectl delete` all objects that may be installed, whatever the values; of kinds that only some
 * clusters know, the objects found there. The order is that of removal: first the policies that taint new nodes, since
 * nothing would remove the taint, and those that make pods require the NRI plugin; then the pods. The namespace stays:
 * it may contain other objects, and `kubectl delete` does not ask.
 */
export function removed(namespace: string, elsewhere: readonly Manifest[]): readonly Manifest[] {
  const everywhere = installable(namespace).filter(isEverywhere).reverse();
  const objects = [...elsewhere, ...everywhere].filter(({ kind }) => kind !== "Namespace");
  return objects.map(({ apiVersion, kind, metadata: { name, namespace: within } }) => ({
    apiVersion,
    kind,
    metadata: { name, ...(within === undefined ? {} : { namespace: within }) },
  }));
}
