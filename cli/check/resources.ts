import { CONFIG_MAP } from "../../cni/contract";
import { decide } from "../../cni/decide";
import { reasonOf } from "../../cni/errors";
import { parseStanza } from "../../cni/parse-stanza";
import { PROXY } from "../../cni/pod";
import { LINKERDS_IMAGE } from "../../constructs/value-groups";
import { type ConfigMapObject, stanzaSource } from "../configuration";
import { docs, readme, runbook } from "../links";
import { ifUnreadable } from "./access";
import { Category, type Finding, type Trouble } from "./finding";
import { type DaemonSet, imageOf, isOurs, NAME, pathOf } from "./objects";
import { known, type Read, type Snapshot } from "./snapshot";

const category = new Category("linkerd-cni-resources");

/** Checks required objects; unreadable ones are covered by the warning about access. */
function judged<T>(
  what: string,
  read: Read<T | undefined>,
  missing: Trouble,
  judge: (value: T) => Trouble | undefined = () => undefined,
): readonly Finding[] {
  if ("problem" in read) return ifUnreadable(category, what, read);
  return [category.judge(what, read.value === undefined ? missing : judge(read.value))];
}

const install = (namespace: string) =>
  `install it: l5d-cni install-cni --cni-namespace ${namespace} | kubectl apply -f -, or helm install linkerd-cni -n ${namespace} in a namespace with labels; --cni-namespace says where to look`;

/** A meshed pod without settings: any problem with it is a problem of the stanza. */
const MESHED = { namespace: "", name: "", annotations: {}, labels: {}, containers: [PROXY], initContainers: [] };

function judgeStanza(map: ConfigMapObject, namespace: string): Trouble | undefined {
  const link = runbook("LinkerdCNIConfigInvalid");
  const remedy = `correct it in ConfigMap ${namespace}/${CONFIG_MAP}, better by the chart's values`;
  try {
    decide(MESHED, {}, parseStanza(stanzaSource(map), NAME));
    return undefined;
  } catch (error) {
    return { problem: reasonOf(error), remedy, link };
  }
}

/** Which DaemonSet to uninstall if several write the same files: never a healthy one of this project. */
function rivalTrouble(others: readonly DaemonSet[], own: DaemonSet | undefined): Trouble {
  const [foreign = others[0]] = others.filter((other) => !isOurs(other));
  const link = runbook("LinkerdCNIConfigContested");
  const problem = `${others.map(pathOf).join(", ")} ${others.length === 1 ? "writes" : "write"} the same files on the nodes`;
  const { namespace, name } = foreign?.metadata ?? {};
  if (own !== undefined && !isOurs(own) && foreign !== undefined && isOurs(foreign)) {
    return { problem, remedy: `keep that one, and uninstall ${pathOf(own)}, which is of another chart`, link };
  }
  const which = foreign !== undefined && isOurs(foreign) ? "uninstall one of the two" : "uninstall it";
  return { problem, remedy: `${which}: helm uninstall, or kubectl delete daemonset -n ${namespace} ${name}`, link };
}

function rivals({ daemonSets, daemonSet, namespace }: Snapshot): readonly Finding[] {
  const what = "no other DaemonSet installs into the nodes";
  if ("problem" in daemonSets) return ifUnreadable(category, what, daemonSets);
  const others = daemonSets.value.filter(({ metadata }) => metadata.namespace !== namespace || metadata.name !== NAME);
  const trouble = others.length === 0 ? undefined : rivalTrouble(others, known(daemonSet));
  return [category.judge(what, trouble)];
}

/** Reports that the plugin is not in this namespace: then there is nothing else to check. */
export function absence({ namespace, daemonSet, daemonSets }: Snapshot): Finding | undefined {
  if ("problem" in daemonSet || daemonSet.value !== undefined) return undefined;
  const [other] = (known(daemonSets) ?? []).filter(({ metadata }) => metadata.namespace !== namespace);
  const what = `DaemonSet ${NAME} is there`;
  if (other === undefined) {
    const problem = `DaemonSet ${namespace}/${NAME} is not there: the plugin is not installed`;
    return category.bad(what, { problem, remedy: install(namespace), link: readme("install-it-into-a-cluster") });
  }
  return category.bad(what, {
    problem: `not in namespace ${namespace}, but found in ${other.metadata.namespace}`,
    remedy: `use --cni-namespace ${other.metadata.namespace}`,
    link: docs("cli.md#check"),
  });
}

/** The objects that `linkerd check --pre --linkerd-cni-enabled` looks for. */
export function resourceFindings(snapshot: Snapshot): readonly Finding[] {
  const { namespace, namespaceObject, configMap, daemonSet } = snapshot;
  const link = readme("install-it-into-a-cluster");
  const missing = (what: string): Trouble => ({ problem: `${what} is not there`, remedy: install(namespace), link });
  const foreign: Trouble = {
    problem: `DaemonSet ${namespace}/${NAME} is not of this project's chart`,
    remedy: "upgrade it: helm upgrade linkerd-cni with this project's chart replaces it",
    link,
  };
  const linkerds = (set: DaemonSet): Trouble => ({
    problem: `DaemonSet ${namespace}/${NAME}: ${imageOf(set)} ${LINKERDS_IMAGE.problem}`,
    remedy: LINKERDS_IMAGE.remedy,
    link,
  });
  const judge = (set: DaemonSet) => {
    if (!isOurs(set)) return foreign;
    return new RegExp(LINKERDS_IMAGE.pattern).test(imageOf(set) ?? "") ? linkerds(set) : undefined;
  };
  return [
    ...judged(`Namespace ${namespace} is there`, namespaceObject, missing(`namespace ${namespace}`)),
    ...judged(`DaemonSet ${NAME} is there`, daemonSet, missing(`DaemonSet ${namespace}/${NAME}`), judge),
    ...judged(
      `ConfigMap ${CONFIG_MAP} holds what the plugin understands`,
      configMap,
      missing(`ConfigMap ${namespace}/${CONFIG_MAP}`),
      (map) => judgeStanza(map, namespace),
    ),
    ...rivals(snapshot),
  ];
}
