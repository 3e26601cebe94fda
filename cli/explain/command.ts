import { type Command, Option } from "commander";
import pc from "picocolors";
import { CNI_NAME, CONFIG_MAP, InstallerVariable } from "../../cni/contract";
import type { NamespaceObject, ServiceObject } from "../../kubernetes/types";
import { type DaemonSet, installerOf, isChained, NAME } from "../check/objects";
import { type ConfigMapObject, defaultStanza, pathOf, stanzaSource } from "../configuration";
import { complain, type Io, Unsuccessful } from "../io";
import { type ClusterOptions, clusterFlags, Kubectl, KubectlError } from "../kubectl";
import { type Evidence, nameOf } from "./evidence";
import { type Explanation, explain } from "./explanation";
import { type Material, type PodManifest, readMaterial } from "./material";
import { isOwnerKind, onePod, podsOf } from "./owner";
import { explanationJson, explanationText, groupedText } from "./text";

interface Options extends ClusterOptions {
  readonly file?: string;
  readonly namespace?: string;
  readonly cniNamespace: string;
  readonly rules?: true;
  readonly output: "text" | "json";
}

interface Wanted {
  readonly namespace?: string;
  readonly name: string;
  /** An owner of pods, in kubectl's form. */
  readonly owner?: string;
}

/** `[NAMESPACE/]POD`, or `KIND/NAME` as for kubectl. */
function wanted(text: string, namespace: string | undefined): Wanted {
  const [first = "", second, ...rest] = text.replace(/^pods?\//, "").split("/");
  if (rest.length > 0 || first === "" || second === "") {
    throw new Error(`${JSON.stringify(text)} is not a pod: write [NAMESPACE/]POD, or KIND/NAME with --namespace`);
  }
  const own = namespace === undefined ? {} : { namespace };
  if (second === undefined) return { name: first, ...own };
  if (isOwnerKind(first)) return { owner: first, name: second, ...own };
  if (namespace === undefined || namespace === first) return { namespace: first, name: second };
  throw new Error(`${text} and --namespace ${namespace} name two namespaces: give one`);
}

/** An object that may not be read counts as absent, which the explanation mentions. */
async function readable<T>(object: Promise<T | undefined>, io: Io): Promise<T | undefined> {
  try {
    return await object;
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    complain(io, error.message);
    return undefined;
  }
}

async function fromCluster({ owner, ...wanted }: Wanted, options: Options, io: Io): Promise<Material> {
  const kubectl = new Kubectl(io, options);
  const pods = owner === undefined ? [await onePod(kubectl, wanted)] : await podsOf(kubectl, { owner, ...wanted });
  const names = [...new Set(pods.map((pod) => nameOf(pod).namespace))];
  const own = { namespace: options.cniNamespace };
  const configured = { kind: "configmap", name: CONFIG_MAP, showManagedFields: true, ...own };
  const [namespaces, configMap, daemonSet, apiServer] = await Promise.all([
    Promise.all(names.map((name) => readable(kubectl.get<NamespaceObject>({ kind: "namespace", name }), io))),
    readable(kubectl.get<ConfigMapObject>(configured), io),
    readable(kubectl.get<DaemonSet>({ kind: "daemonset", name: NAME, ...own }), io),
    readable(kubectl.get<ServiceObject>({ kind: "service", name: "kubernetes", namespace: "default" }), io),
  ]);
  return {
    pods,
    namespaces: namespaces.flatMap((namespace) => namespace ?? []),
    configMaps: configMap === undefined ? [] : [configMap],
    daemonSets: daemonSet === undefined ? [] : [daemonSet],
    ...(apiServer === undefined ? {} : { apiServer }),
  };
}

function fromFile(path: string, pod: Wanted | undefined, io: Io): Material {
  const from = path === "-" ? "standard input" : path;
  const material = readMaterial(io.readFile(path), from);
  if (pod === undefined) return material;
  if (pod.owner !== undefined) throw new Error(`${pod.owner}/${pod.name}: of a file, name its pods: [NAMESPACE/]POD`);
  const isWanted = (manifest: PodManifest) => {
    const { namespace, name } = nameOf(manifest);
    return name === pod.name && (pod.namespace === undefined || namespace === pod.namespace);
  };
  const pods = material.pods.filter(isWanted);
  if (pods.length > 0) return { ...material, pods };
  const there = material.pods.map(nameOf).map(({ namespace, name }) => `${namespace}/${name}`);
  throw new Error(`${from}: holds no pod ${pod.name}, but ${there.join(", ")}`);
}

/** Objects of a kind in the plugin's namespace; in a file, the only one counts in any namespace. */
function ofPlugin<T extends Pick<ConfigMapObject, "metadata">>(
  objects: readonly T[],
  namespace: string,
): T | undefined {
  const inNamespace = objects.find(({ metadata }) => metadata?.namespace === namespace);
  return inNamespace ?? (objects.length === 1 ? objects[0] : undefined);
}

/** When any manager of an object's fields last wrote it. */
function lastWritten(metadata: ConfigMapObject["metadata"]): string | undefined {
  const times = [metadata?.creationTimestamp, ...(metadata?.managedFields ?? []).map(({ time }) => time)];
  return times
    .filter((time) => time !== undefined)
    .sort()
    .at(-1);
}

function explanations(material: Material, cniNamespace: string): readonly Explanation[] {
  const configMap = ofPlugin(material.configMaps, cniNamespace);
  const daemonSet = ofPlugin(material.daemonSets, cniNamespace);
  const defaults = defaultStanza(cniNamespace);
  const writtenAt = lastWritten(configMap?.metadata);
  const shared = {
    chained: isChained(daemonSet),
    nri: installerOf(daemonSet).get(InstallerVariable.nriEvents) === "true",
    defaults,
    stanza: configMap === undefined ? defaults : stanzaSource(configMap),
    ...(configMap === undefined ? {} : { configMap: pathOf(configMap.metadata) }),
    ...(writtenAt === undefined ? {} : { configuredAt: writtenAt }),
    ...(material.apiServer === undefined ? {} : { apiServer: material.apiServer }),
  };
  return material.pods.map((pod) => {
    const namespace = material.namespaces.find(({ metadata }) => metadata?.name === nameOf(pod).namespace);
    const evidence: Evidence = { ...shared, pod, ...(namespace === undefined ? {} : { namespace }) };
    return explain(evidence);
  });
}

async function materialFor(which: Wanted | undefined, options: Options, io: Io): Promise<Material> {
  if (options.file !== undefined) return fromFile(options.file, which, io);
  if (which === undefined) throw new Error("say which pod, [NAMESPACE/]POD, or give --file");
  return fromCluster(which, options, io);
}

async function run(pod: string | undefined, options: Options, io: Io): Promise<void> {
  const which = pod === undefined ? undefined : wanted(pod, options.namespace);
  const material = await materialFor(which, options, io);
  const made = explanations(material, options.cniNamespace);
  const rules = options.rules === true;
  if (options.output === "json") {
    io.out(
      `${JSON.stringify(
        made.map((each) => explanationJson(each, rules)),
        undefined,
        2,
      )}\n`,
    );
  } else {
    const display = { rules, colours: pc.createColors(io.colour) };
    const texts = made.map((each) => explanationText(each, display));
    io.out(which?.owner === undefined ? texts.join("\n") : groupedText(made, display));
  }
  if (made.some(({ outcome }) => outcome.kind === "does not start")) throw new Unsuccessful();
}

/** Adds `l5d-cni explain`. */
export function addExplain(program: Command, io: Io): void {
  const command = program
    .command("explain")
    .description("Say what the plugin does for a pod, and why")
    .argument(
      "[pod]",
      "[NAMESPACE/]POD, or KIND/NAME of an owner of pods (deploy/web), read from the cluster by kubectl, or a pod of --file",
    )
    .option(
      "-f, --file <file>",
      "Pods, and the Namespace and ConfigMap that count for them, from YAML or JSON; - for standard input",
    )
    .option("-n, --namespace <name>", "Namespace of the pod or of its owner")
    .option("--cni-namespace <name>", "Namespace of the plugin's ConfigMap", CNI_NAME)
    .option("--rules", "Print the rules too, as iptables-restore takes them")
    .addOption(new Option("-o, --output <format>", "Format").choices(["text", "json"]).default("text"));
  for (const flag of clusterFlags()) command.addOption(flag);
  command.action((pod: string | undefined, options: Options) => run(pod, options, io));
}
