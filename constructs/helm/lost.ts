import { ApiObject } from "cdk8s";
import type { HelmChart } from "./chart";
import { isExpr } from "./expression";

type Path = readonly string[];

/** Where the expressions of a manifest stand. */
function places(value: unknown, path: Path = []): readonly Path[] {
  if (isExpr(value)) return [path];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => places(item, [...path, key]));
}

/**
 * The generated `Kube…` classes convert what they know and drop the rest, an expression that stands for a whole object
 * among it. Finds what was dropped, so that it cannot go unnoticed.
 *
 * @throws an Error that names the places
 */
export function checkNothingLost(chart: HelmChart): void {
  const objects = chart.node.findAll().filter((construct): construct is ApiObject => ApiObject.isApiObject(construct));
  const problems = objects.flatMap((object) => {
    const before = places(ApiObject.prototype.toJson.call(object)).length;
    const lost = before - places(object.toJson()).length;
    return lost > 0 ? [`${object.node.path} (${object.kind}) loses ${lost} of ${before}`] : [];
  });
  if (problems.length > 0) throw new Error(`expressions are lost: ${problems.join("; ")}: use HelmObject instead`);
}
