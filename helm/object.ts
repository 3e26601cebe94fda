import { ApiObject, type ApiObjectMetadata, type ApiObjectProps, type GroupVersionKind, Lazy } from "cdk8s";
import { Construct } from "constructs";
import { HelmChart } from "./chart";
import { hasExpr, type Input, isExpr, WHEN } from "./expression";
import type { Templated } from "./templated";

/** Metadata of an object whose name is known; all other fields may be expressions. */
export interface HelmMetadata {
  /** The name of the object. */
  readonly name: Input<string>;
  /** @default none: the release's namespace, or the object has none */
  readonly namespace?: Input<string> | undefined;
  /** @default none */
  readonly labels?: Readonly<Record<string, Input<string>>> | undefined;
  /** @default none */
  readonly annotations?: Readonly<Record<string, Input<string>>> | undefined;
}

/** A manifest as described by the `Props` of a class that cdk8s generates, with expressions anywhere. */
export type HelmManifest<Props> = {
  readonly metadata: HelmMetadata;
  /**
   * Renders the object only if this holds; if it is known to be false, the chart does not contain the object. @default
   * true
   */
  readonly when?: Input<boolean> | undefined;
} & {
  readonly [Key in keyof Props as Key extends "metadata" ? never : Key]: Templated<Props[Key]> | undefined;
};

/** Leaves out absent items of lists; cdk8s does so with keys of maps. */
function compacted(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== undefined).map(compacted);
  if (typeof value !== "object" || value === null) return value;
  // cdk8s resolves instances, such as Lazy.
  if (value.constructor !== undefined && value.constructor.name !== "Object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, compacted(item)]));
}

/** A part of a manifest that is computed at synthesis. */
export const lazily = <T>(produce: () => T): T => Lazy.any({ produce: () => compacted(produce()) }) as T;

/**
 * An API object that may contain expressions anywhere and may be conditional.
 *
 * The generated `Kube…` classes convert field by field: they lose an expression in place of a list or an object, and
 * every field newer than their schema. This class has their types and does not change values.
 */
export class HelmObject<Props = object> extends ApiObject {
  constructor(scope: Construct, id: string, type: GroupVersionKind, given: HelmManifest<Props>) {
    const { when, ...manifest } = given;
    super(scope, id, {
      ...(compacted(manifest) as object),
      apiVersion: type.apiVersion,
      kind: type.kind,
      metadata: manifest.metadata as ApiObjectMetadata,
      ...(isExpr(when) ? { [WHEN]: when } : {}),
    });
    if (when === false) scope.node.tryRemoveChild(id);
  }

  /** @throws an Error if a manifest that Helm does not render contains an expression */
  override toJson(): unknown {
    const manifest: unknown = super.toJson();
    if (HelmChart.find(this) === undefined && hasExpr(manifest)) {
      throw new Error(`${this.node.path} (${this.kind}) has expressions, which are for constructs in a HelmChart`);
    }
    return manifest;
  }
}

/** The API objects that a value lists. A Helm chart renders them from one template, since their number is not known. */
export class HelmObjectList extends Construct {
  constructor(scope: Construct, id: string, list: Input<readonly ApiObjectProps[]>) {
    super(scope, id);
    if (!isExpr(list)) for (const [index, manifest] of list.entries()) new ApiObject(this, String(index), manifest);
    else HelmChart.find(this)?.addList(list);
  }
}
