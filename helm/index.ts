export { capabilities, define, HelmChart, release } from "./chart";
export { assert, each, items, present, spread, when } from "./control";
export { type Expr, type Input, isExpr, type Kind, ref } from "./expression";
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
export { type Inputs, inputsOf, type PropsOf, type Refs, type Source, valueRefs } from "./inputs";
export { type HelmManifest, type HelmMetadata, HelmObject, HelmObjectList, lazily } from "./object";
export { type ChartMetadata, type ChartPackage, chartFiles } from "./package";
export type { Part, Parts, Templated } from "./templated";
export {
  type AboutInteger,
  type AboutMap,
  type AboutNumericString,
  type AboutObject,
  type AboutString,
  type AboutValue,
  group,
  type TextForm,
  type Value,
  type ValueMembers,
  type ValuesIn,
  value,
  valuesOf,
} from "./value";
export { writeManifests } from "./yaml";
