import { type ApiObject, Chart, type GroupVersionKind } from "cdk8s";
import { Construct } from "constructs";
import type { z } from "zod";
import {
  HelmChart,
  type HelmManifest,
  type HelmMetadata,
  HelmObject,
  type Input,
  type Refs,
  release,
  spread,
} from "./helm";
import { inputsOf } from "./inputs";
import { checkNamespace } from "./problems";

/** Where a construct is installed, and where a chart has its values. */
export interface InstallationProps {
  /** @default the chart's namespace, else the name of the construct's resources; in a Helm chart the release's namespace */
  readonly namespace?: Input<string> | undefined;
  /**
   * Where a Helm chart of your own has the values of this construct.
   * @default ["Values"]
   */
  readonly valuesPath?: readonly string[] | undefined;
}

/** Labels by their names. */
export type Labels = Readonly<Record<string, Input<string>>>;

/** What tells one construct's resources from another's. */
interface Identity<Schema> {
  /** The name of its resources. */
  readonly name: string;
  /** The labels of each of them. */
  readonly labels: Labels;
  /** Its values. */
  readonly schema: Schema;
  /** Names of values that may be given and are not used. @default none */
  readonly ignored?: readonly string[];
}

type Added = Input<Readonly<Record<string, string>>>;

/** Resources of one name in one namespace, made from values. */
export abstract class Installation<Schema extends z.ZodObject> extends Construct {
  /** The values it was made with: known ones, and in a Helm chart references to `.Values`. */
  readonly values: Refs<z.output<Schema>>;
  readonly namespace: Input<string>;
  private readonly identity: Identity<Schema>;

  /** @throws ValuesError with every problem of the values */
  constructor(scope: Construct, id: string, props: InstallationProps, identity: Identity<Schema>) {
    super(scope, id);
    const { namespace, valuesPath, ...given } = props;
    this.identity = identity;
    this.values = inputsOf(this, identity.schema, { given, ignored: identity.ignored, path: valuesPath });
    this.namespace = namespace ?? this.defaultNamespace();
    checkNamespace(this.namespace);
  }

  /** The labels of a resource: the construct's own ones win over what users add. */
  protected labels(own: Labels = {}, added: Added = this.commonLabels): Labels {
    return { ...spread(added), ...this.identity.labels, ...own };
  }

  /** The metadata of a resource in the namespace. */
  protected metadata(own?: Labels): HelmMetadata & { readonly name: string } {
    return { name: this.identity.name, namespace: this.namespace, labels: this.labels(own) };
  }

  /** The metadata of a resource of the whole cluster. */
  protected clusterMetadata(): HelmMetadata {
    return { name: this.identity.name, labels: this.labels() };
  }

  /** Adds a resource, unless it is known that its condition does not hold. */
  protected add<Props>(id: string, type: GroupVersionKind, manifest: HelmManifest<Props>): ApiObject {
    return new HelmObject(this, id, type, manifest);
  }

  private get commonLabels(): Added {
    return (this.values as { readonly commonLabels: Added }).commonLabels;
  }

  private defaultNamespace(): Input<string> {
    return HelmChart.find(this) === undefined ? (Chart.of(this).namespace ?? this.identity.name) : release.namespace;
  }
}
