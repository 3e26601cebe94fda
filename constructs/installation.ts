import { type ApiObject, type ApiObjectProps, Chart, type GroupVersionKind } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import { Annotation } from "../cni/contract";
import {
  HelmChart,
  type HelmManifest,
  type HelmMetadata,
  HelmObject,
  HelmObjectList,
  type Input,
  inputsOf,
  lazily,
  merge,
  type Part,
  type Parts,
  type Refs,
  release,
  spread,
  type ValueMembers,
} from "../helm/index";
import { namespaceProblems } from "./namespace";
import { binding } from "./rbac";

/** The namespace of a construct, and the path of its values in a chart. */
export interface InstallationProps {
  /**
   * The namespace of the resources.
   * @default the chart's namespace, else the name of the construct's resources; in a Helm chart the release's namespace
   */
  readonly namespace?: Input<string> | undefined;
  /** Path of this construct's values in your own Helm chart. @default ["Values"] */
  readonly valuesPath?: readonly string[] | undefined;
}

/** Labels by name. */
export type Labels = Readonly<Record<string, Input<string>>>;

/** Distinguishes one construct's resources from another's. */
interface Identity<M> {
  /** The name of its resources. */
  readonly name: string;
  /** The labels of each of them. */
  readonly labels: Labels;
  /** Its values. */
  readonly schema: M;
  /** Names of values that are accepted and ignored. @default none */
  readonly ignored?: readonly string[];
}

type Added = Input<Readonly<Record<string, string>>>;

/** The values that every installation has. */
interface SharedValues {
  readonly commonLabels: Added;
  readonly commonAnnotations: Added;
  readonly podLabels: Added;
  readonly podAnnotations: Added;
  readonly extraObjects: Input<readonly ApiObjectProps[]>;
  readonly networkPolicy: { readonly enabled: Input<boolean> };
}

/** Resources with one name in one namespace, rendered from values. */
export abstract class Installation<M extends ValueMembers> extends Construct {
  /** The values: known ones, and in a Helm chart references to `.Values`. */
  readonly values: Refs<M>;
  /** The namespace of its resources. */
  readonly namespace: Input<string>;
  private readonly identity: Identity<M>;
  private readonly parts: (() => unknown)[] = [];

  /** All problems of the values are reported at once, at synthesis. */
  constructor(scope: Construct, id: string, props: InstallationProps, identity: Identity<M>) {
    super(scope, id);
    const { namespace, valuesPath, ...given } = props;
    this.identity = identity;
    const source = { given, ignored: identity.ignored, path: valuesPath };
    const { values, problems } = inputsOf(this, identity.schema, source);
    this.values = values;
    this.namespace = namespace ?? this.defaultNamespace();
    const early = [...problems, ...namespaceProblems(this.namespace)];
    this.node.addValidation({
      validate: () => (early.length > 0 ? early : this.problemsOfParts()),
    });
  }

  /** The labels of a resource: the construct's labels win over those that users add. */
  protected labels(own: Labels = {}, added: Added = this.shared.commonLabels): Labels {
    return { ...spread(added), ...this.identity.labels, ...own };
  }

  /** The annotations of a resource: the construct's annotations win over those that users add. */
  protected annotations(own: Labels = {}): Labels {
    return { ...spread(this.shared.commonAnnotations), ...own };
  }

  /** The metadata of a namespaced resource. */
  protected metadata(own?: Labels, annotations?: Labels): HelmMetadata & { readonly name: string } {
    const { name } = this.identity;
    return { name, namespace: this.namespace, labels: this.labels(own), annotations: this.annotations(annotations) };
  }

  /** The metadata of a cluster-scoped resource. */
  protected clusterMetadata(): HelmMetadata {
    return { name: this.identity.name, labels: this.labels(), annotations: this.annotations() };
  }

  /** The metadata of a resource, with labels by which another program selects it. */
  protected selectable(added: Added): HelmMetadata {
    return { ...this.metadata(), labels: this.labels({}, merge(added, this.shared.commonLabels)) };
  }

  /** The metadata of its pods, which Linkerd must not inject. */
  protected podMetadata(own: Labels, annotations: Labels = {}) {
    const { podLabels, podAnnotations, commonLabels } = this.shared;
    return {
      labels: this.labels(own, merge(podLabels, commonLabels)),
      annotations: { ...spread(podAnnotations), ...annotations, [Annotation.inject]: "disabled" },
    };
  }

  /** Adds a resource, unless its condition is known to be false. */
  protected add<Props>(id: string, type: GroupVersionKind, manifest: HelmManifest<Props>): ApiObject {
    return new HelmObject(this, id, type, manifest);
  }

  /** Permissions of its pods in the cluster. Called at synthesis. */
  protected abstract clusterRoleRules(): Parts<k8s.PolicyRule>;

  /** The connections to its pods that the NetworkPolicy allows. Called at synthesis. */
  protected abstract networkPolicySpec(): Part<k8s.NetworkPolicySpec>;

  /** Permissions of its pods in the cluster: those of `clusterRoleRules()`. */
  protected createClusterRole(): ApiObject {
    return this.add<k8s.KubeClusterRoleProps>("cluster-role", k8s.KubeClusterRole.GVK, {
      metadata: this.clusterMetadata(),
      rules: this.lazily(() => this.clusterRoleRules()),
    });
  }

  /** Gives them to the service account of its pods. */
  protected createClusterRoleBinding(): ApiObject {
    return this.add<k8s.KubeClusterRoleBindingProps>("cluster-role-binding", k8s.KubeClusterRoleBinding.GVK, {
      metadata: this.clusterMetadata(),
      ...binding("ClusterRole", this.identity.name, this.namespace),
    });
  }

  /** With `networkPolicy.enabled`: allows only the connections of `networkPolicySpec()`. */
  protected createNetworkPolicy(): ApiObject | undefined {
    return this.add<k8s.KubeNetworkPolicyProps>("network-policy", k8s.KubeNetworkPolicy.GVK, {
      when: this.shared.networkPolicy.enabled,
      metadata: this.metadata(),
      spec: this.lazily(() => this.networkPolicySpec()),
    });
  }

  /** With `extraObjects`: the user's own manifests. */
  protected createExtraObjects(): void {
    new HelmObjectList(this, "extra-objects", this.shared.extraObjects);
  }

  /** A part of a manifest that is computed at synthesis, when the fields of a subclass are set. */
  protected lazily<T>(produce: () => T): T {
    this.parts.push(produce);
    return lazily(produce);
  }

  /** The problems found by checks across values, each once even if several parts report it. */
  private problemsOfParts(): string[] {
    const problems = this.parts.flatMap((produce) => {
      try {
        produce();
        return [];
      } catch (error) {
        return [error instanceof Error ? error.message : String(error)];
      }
    });
    return [...new Set(problems)];
  }

  private get shared(): SharedValues {
    return this.values as unknown as SharedValues;
  }

  private defaultNamespace(): Input<string> {
    return HelmChart.find(this) === undefined ? (Chart.of(this).namespace ?? this.identity.name) : release.namespace;
  }
}
