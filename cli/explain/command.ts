import { type Command, Option } from "commander";
import pc from "picocolors";
import type { NamespaceObject, ServiceObject } from "../../kubernetes/types";
import { type DaemonSet, installerOf, NAME } from "../check/objects";
import { CONFIG_MAP, type ConfigMapObject, defaultStanza, stanzaSource } from "../configuration";
import { type Io, Unsuccessful } from "../io";
import { type ClusterOptions, clusterFlags, Kubectl, KubectlError } from "../kubectl";
import { type Evidence, nameOf } from "./evidence";
import { type Explanation, explain } from "./explanation";
import { type Material, type PodManifest, readMaterial } from "./material";
import { explanationJson, explanationText } from "./text";

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
}

/** `[NAMESPACE/]POD`, where kubectl's `pod/NAME` is a pod as well. */
function wantedPod(text: string, namespace: string | undefined): Wanted {
  const [first = "", second, ...rest] = text.replace(/^pods?\//, "").split("/");
  if (rest.length > 0 || first === "" || second === "") {
    throw new Error(`${JSON.stringify(text)} is not a pod: write [NAMESPACE/]POD`);
  }
  if (second === undefined) return { name: first, ...(namespace === undefined ? {} : { namespace }) };
  if (namespace === undefined || namespace === first) return { namespace: first, name: second };
  throw new Error(`${text} and --namespace ${namespace} name two namespaces: give one`);
}

/** What is not there, or may not be read, is as good as absent: the explanation says so. */
async function readable<T>(object: Promise<T | undefined>, io: Io): Promise<T | undefined> {
  try {
    return await object;
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    io.err(`l5d-cni: ${error.message}\n`);
    return undefined;
  }
}

async function fromCluster(pod: Wanted, options: Options, io: Io): Promise<Material> {
  const kubectl = new Kubectl(io, options);
  const found = await kubectl.get<PodManifest>({ kind: "pod", ...pod });
  if (found === undefined) {
    const where = pod.namespace === undefined ? "in the context's namespace" : `in namespace ${pod.namespace}`;
    throw new Error(`no pod ${pod.name} ${where}`);
  }
  const { namespace: name } = nameOf(found);
  const own = { namespace: options.cniNamespace };
  const [namespace, configMap, daemonSet, apiServer] = await Promise.all([
    readable(kubectl.get<NamespaceObject>({ kind: "namespace", name }), io),
    readable(kubectl.get<ConfigMapObject>({ kind: "configmap", name: CONFIG_MAP, ...own }), io),
    readable(kubectl.get<DaemonSet>({ kind: "daemonset", name: NAME, ...own }), io),
    readable(kubectl.get<ServiceObject>({ kind: "service", name: "kubernetes", namespace: "default" }), io),
  ]);
  return {
    pods: [found],
    namespaces: namespace === undefined ? [] : [namespace],
    configMaps: configMap === undefined ? [] : [configMap],
    daemonSets: daemonSet === undefined ? [] : [daemonSet],
    ...(apiServer === undefined ? {} : { apiServer }),
  };
}

function fromFile(path: string, pod: Wanted | undefined, io: Io): Material {
  const from = path === "-" ? "standard input" : path;
  const material = readMaterial(io.readFile(path), from);
  if (pod === undefined) return material;
  const isWanted = (manifest: PodManifest) => {
    const { namespace, name } = nameOf(manifest);
    return name === pod.name && (pod.namespace === undefined || namespace === pod.namespace);
  };
  const pods = material.pods.filter(isWanted);
  if (pods.length > 0) return { ...material, pods };
  const there = material.pods.map(nameOf).map(({ namespace, name }) => `${namespace}/${name}`);
  throw new Error(`${from}: holds no pod ${pod.name}, but ${there.join(", ")}`);
}

/** What the plugin's namespace has of a kind; in a file a single one is meant wherever it is. */
function ofPlugin<T extends Pick<ConfigMapObject, "metadata">>(
  objects: readonly T[],
  namespace: string,
): T | undefined {
  const inNamespace = objects.find(({ metadata }) => metadata?.namespace === namespace);
  return inNamespace ?? (objects.length === 1 ? objects[0] : undefined);
}

function explanations(material: Material, cniNamespace: string): readonly Explanation[] {
  const configMap = ofPlugin(material.configMaps, cniNamespace);
  const chained = installerOf(ofPlugin(material.daemonSets, cniNamespace)).get("CHAINED") !== "false";
  const defaults = defaultStanza(cniNamespace);
  const shared = {
    chained,
    defaults,
    stanza: configMap === undefined ? defaults : stanzaSource(configMap),
    ...(configMap === undefined ? {} : { configMap: `${configMap.metadata?.namespace}/${CONFIG_MAP}` }),
    ...(material.apiServer === undefined ? {} : { apiServer: material.apiServer }),
  };
  return material.pods.map((pod) => {
    const namespace = material.namespaces.find(({ metadata }) => metadata?.name === nameOf(pod).namespace);
    const evidence: Evidence = { ...shared, pod, ...(namespace === undefined ? {} : { namespace }) };
    return explain(evidence);
  });
}

async function run(pod: string | undefined, options: Options, io: Io): Promise<void> {
  const wanted = pod === undefined ? undefined : wantedPod(pod, options.namespace);
  if (wanted === undefined && options.file === undefined) {
    throw new Error("say which pod, [NAMESPACE/]POD, or give --file");
  }
  const material =
    options.file === undefined ? await fromCluster(wanted as Wanted, options, io) : fromFile(options.file, wanted, io);
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
    const colours = pc.createColors(io.colour);
    io.out(made.map((each) => explanationText(each, rules, colours)).join("\n"));
  }
  if (made.some(({ outcome }) => outcome.kind === "does not start")) throw new Unsuccessful();
}

/** Adds `l5d-cni explain`. */
export function addExplain(program: Command, io: Io): void {
  const command = program
    .command("explain")
    .description("Say what the plugin does for a pod, and why")
    .argument("[pod]", "[NAMESPACE/]POD, read from the cluster by kubectl, or one of --file")
    .option("-f, --file <file>", "Pods, and what they are judged by, from YAML or JSON; - for standard input")
    .option("-n, --namespace <name>", "Namespace of the pod")
    .option("--cni-namespace <name>", "Namespace of the plugin's ConfigMap", "linkerd-cni")
    .option("--rules", "Print the rules too, as iptables-restore takes them")
    .addOption(new Option("-o, --output <format>", "Format").choices(["text", "json"]).default("text"));
  for (const flag of clusterFlags()) command.addOption(flag);
  command.action((pod: string | undefined, options: Options) => run(pod, options, io));
}
