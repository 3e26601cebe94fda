export { capabilities, define, HelmChart, release } from "./chart";
export { assert, each, items, present, spread, when } from "./control";
export type { Expr, Input, Kind } from "./expression";
export { isExpr, ref } from "./expression";
export { choicesText, type Field, fieldsOf } from "./fields";
export {
  and,
  bool,
  boolOrTrue,
  compact,
  concat,
  entryOf,
  eq,
  first,
  ge,
  int,
  last,
  le,
  matches,
  merge,
  not,
  or,
  orAbsent,
  orElse,
  sha256,
  split,
  splitBy,
  text,
  toJson,
  toPrettyJson,
  trim,
} from "./functions";
export { flag, integer, numberOrText } from "./loose-types";
export { type HelmManifest, type HelmMetadata, HelmObject, HelmObjectList, lazily } from "./object";
export { type ChartMetadata, type ChartPackage, chartFiles } from "./package";
export { baseOf, type Refs, valueRefs } from "./refs";
export type { Templated } from "./templated";
export { writeManifests } from "./yaml";
