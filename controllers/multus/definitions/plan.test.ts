import type { Namespace } from "../namespaces";
import type { Definition } from "./definition";
import { type Plan, plan } from "./plan";

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

const leave: Plan = { kind: "leave" };
const create: Plan = { kind: "create", config: "{}" };

const cases: readonly [string, Namespace | undefined, Definition | undefined, string | undefined, Plan][] = [
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
  expect(plan({ namespace: given, definition, config, linkerdNamespace: "linkerd" })).toEqual(wanted);
});
