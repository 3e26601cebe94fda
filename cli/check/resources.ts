import { decide } from "../../cni/decide";
import { reasonOf } from "../../cni/errors";
import { parseStanza } from "../../cni/parse-stanza";
import { PROXY } from "../../cni/pod";
import { CONFIG_MAP, type ConfigMapObject, stanzaSource } from "../configuration";
import { docs, readme, runbook } from "../links";
import { Category, type Finding, type Trouble } from "./finding";
import { NAME } from "./names";
import { isOurs } from "./objects";
import type { Read, Snapshot } from "./snapshot";

const category = new Category("linkerd-cni-resources");

/** What is said where something could not be read. */
export const unreadable = (problem: string): Trouble => ({
  problem,
  remedy: "ask as somebody who may read it",
  link: docs("cli.md#who-asks"),
});

/** Trouble with what has to be there. */
function troubleOf<T>(
  what: Read<T | undefined>,
  missing: Trouble,
  judge: (value: T) => Trouble | undefined = () => undefined,
): Trouble | undefined {
  if ("problem" in what) return unreadable(what.problem);
  return what.value === undefined ? missing : judge(what.value);
}

const install = (namespace: string) =>
  `install it: l5d-cni install-cni -n ${namespace} | kubectl apply -f -, or helm install linkerd-cni -n ${namespace} in a namespace with labels; --cni-namespace says where to look`;

/** A pod about which nothing is said but that it is meshed: what is wrong then, is wrong with the stanza. */
const MESHED = { namespace: "", name: "", annotations: {}, labels: {}, containers: [PROXY], initContainers: [] };

function judgeStanza(map: ConfigMapObject, namespace: string): Trouble | undefined {
  const link = runbook("LinkerdCNIConfigInvalid");
  const remedy = `mend it in ConfigMap ${namespace}/${CONFIG_MAP}, better by the chart's values`;
  try {
    decide(MESHED, {}, parseStanza(stanzaSource(map), NAME));
    return undefined;
  } catch (error) {
    return { problem: reasonOf(error), remedy, link };
  }
}

function only({ daemonSets, namespace }: Snapshot): Finding {
  const what = "no other DaemonSet installs into the nodes";
  if ("problem" in daemonSets) return category.bad(what, unreadable(daemonSets.problem));
  const others = daemonSets.value.filter(({ metadata }) => metadata.namespace !== namespace || metadata.name !== NAME);
  if (others.length === 0) return category.good(what);
  const names = others.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  return category.bad(what, {
    problem: `${names.join(", ")} ${names.length === 1 ? "writes" : "write"} the same files on the nodes`,
    remedy: `uninstall it: helm uninstall, or kubectl delete daemonset -n ${others[0]?.metadata.namespace} ${others[0]?.metadata.name}`,
    link: runbook("LinkerdCNIConfigContested"),
  });
}

/** What has to be there, as `linkerd check --pre --linkerd-cni-enabled` looks for it. */
export function resourceFindings(snapshot: Snapshot): readonly Finding[] {
  const { namespace, namespaceObject, configMap, daemonSet } = snapshot;
  const link = readme("install-it-into-a-cluster");
  const missing = (what: string): Trouble => ({ problem: `${what} is not there`, remedy: install(namespace), link });
  const foreign: Trouble = {
    problem: `DaemonSet ${namespace}/${NAME} is not of this project's chart`,
    remedy: "upgrade it: helm upgrade linkerd-cni with this project's chart takes its place",
    link,
  };
  return [
    category.judge(`Namespace ${namespace} is there`, troubleOf(namespaceObject, missing(`namespace ${namespace}`))),
    category.judge(
      `ConfigMap ${CONFIG_MAP} holds what the plugin understands`,
      troubleOf(configMap, missing(`ConfigMap ${namespace}/${CONFIG_MAP}`), (map) => judgeStanza(map, namespace)),
    ),
    category.judge(
      `DaemonSet ${NAME} is there`,
      troubleOf(daemonSet, missing(`DaemonSet ${namespace}/${NAME}`), (set) => (isOurs(set) ? undefined : foreign)),
    ),
    only(snapshot),
  ];
}
