import type { Namespace } from "../namespace";
import type { Definition } from "./definition";
import { countDefinitions, type DefinitionPlan, planDefinition } from "./plan-definition";

const namespace = (multus?: string, more: Partial<Namespace> = {}): Namespace => ({
  name: "shop",
  annotations: multus === undefined ? {} : { "linkerd.io/multus": multus },
  terminating: false,
  ...more,
});
const ours: Definition = { uid: "1", resourceVersion: "7", ours: true, deleting: false, config: "{}" };
const foreign: Definition = { ...ours, ours: false, config: "{ }" };
const drifted: Definition = { ...ours, config: "changed" };
const emptied: Definition = { ...ours, config: undefined };
const controlPlane = (multus?: string) => namespace(multus, { name: "linkerd" });

const leave: DefinitionPlan = { kind: "leave" };
const create: DefinitionPlan = { kind: "create", config: "{}" };

const cases: readonly [string, Namespace | undefined, Definition | undefined, string | undefined, DefinitionPlan][] = [
  ["enabled, none there", namespace("enabled"), undefined, "{}", create],
  ["enabled, as it should be", namespace("enabled"), ours, "{}", leave],
  ["enabled, drifted", namespace("enabled"), drifted, "{}", { kind: "update", definition: drifted, config: "{}" }],
  ["enabled, emptied", namespace("enabled"), emptied, "{}", { kind: "update", definition: emptied, config: "{}" }],
  ["enabled, foreign", namespace("enabled"), foreign, "{}", { kind: "foreign", definition: foreign }],
  ["enabled, on its way out", namespace("enabled"), { ...drifted, deleting: true }, "{}", leave],
  ["enabled, no ConfigMap, none there", namespace("enabled"), undefined, undefined, leave],
  ["enabled, no ConfigMap, drifted", namespace("enabled"), drifted, undefined, leave],
  ["enabled, terminating", namespace("enabled", { terminating: true }), undefined, "{}", leave],
  ["disabled, ours", namespace("disabled"), ours, "{}", { kind: "delete", definition: ours }],
  ["disabled, ours, no ConfigMap", namespace("disabled"), ours, undefined, { kind: "delete", definition: ours }],
  ["disabled, foreign", namespace("disabled"), foreign, "{}", leave],
  ["disabled, ours, on its way out", namespace("disabled"), { ...ours, deleting: true }, "{}", leave],
  ["disabled, ours, terminating", namespace("disabled", { terminating: true }), ours, "{}", leave],
  ["absent, ours", namespace(), ours, "{}", { kind: "delete", definition: ours }],
  ["absent, none there", namespace(), undefined, "{}", leave],
  ["another word, ours", namespace("Enabled"), ours, "{}", { kind: "delete", definition: ours }],
  ["control plane, absent", controlPlane(), undefined, "{}", create],
  ["control plane, disabled", controlPlane("disabled"), undefined, "{}", create],
  ["control plane, disabled, ours", controlPlane("disabled"), ours, "{}", leave],
  ["no such namespace", undefined, ours, "{}", leave],
];

test.each(cases)("%s", (...[, given, definition, config, wanted]) => {
  expect(planDefinition({ namespace: given, definition, config, linkerdNamespace: "linkerd" })).toEqual(wanted);
});

const named = (name: string, value?: string, terminating = false) => ({
  name,
  annotations: value === undefined ? {} : { "linkerd.io/multus": value },
  terminating,
});
const owned = (ours: boolean): Definition => ({ uid: "1", resourceVersion: "1", ours, deleting: false, config: "{}" });

test("only wanted definitions count, so that an extra one does not hide a missing one", () => {
  const namespaces = [
    named("linkerd"),
    named("shop", "enabled"),
    named("lacking", "enabled"),
    named("contested", "enabled"),
    named("left", "disabled"),
    named("ending", "enabled", true),
    named("other"),
  ];
  const found: Readonly<Record<string, Definition>> = {
    linkerd: owned(true),
    shop: owned(true),
    contested: owned(false),
    left: owned(true),
    ending: owned(true),
    other: owned(false),
  };
  const definition = (name: string) => found[name];
  const counts = countDefinitions({ namespaces, definition, linkerdNamespace: "linkerd" });
  expect(counts).toEqual({ ours: 2, foreign: 1, wanted: 4 });
});
