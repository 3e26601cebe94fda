import { docs } from "../links";
import { ifUnreadable } from "./access";
import { Category, type Finding, type Trouble } from "./finding";
import type { Grant, Rule } from "./objects";
import type { Snapshot } from "./snapshot";

/** One verb on one kind of object. */
interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  readonly name: string | undefined;
}

function rightsOf({ apiGroups = [], resources = [], verbs = [], resourceNames = [] }: Rule): readonly Right[] {
  const names = resourceNames.length > 0 ? resourceNames : [undefined];
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) => verbs.flatMap((verb) => names.map((name) => ({ group, resource, verb, name })))),
  );
}

const has = (list: readonly string[] | undefined, item: string) => list?.includes(item) || list?.includes("*") || false;

function allows(rule: Rule, { group, resource, verb, name }: Right): boolean {
  const names = rule.resourceNames ?? [];
  const named = names.length === 0 || (name !== undefined && names.includes(name));
  return named && has(rule.apiGroups, group) && has(rule.resources, resource) && has(rule.verbs, verb);
}

function rightText({ group, resource, verb, name }: Right): string {
  return `${verb} ${resource}${group === "" ? "" : `.${group}`}${name === undefined ? "" : ` ${name}`}`;
}

/** The missing permissions, in words. */
function lackOf(wanted: Grant, found: Grant): string | undefined {
  if (wanted.rules !== undefined) {
    const rights = wanted.rules.flatMap(rightsOf);
    const lacking = rights.filter((right) => !(found.rules ?? []).some((rule) => allows(rule, right)));
    return lacking.length === 0 ? undefined : `does not allow to ${[...new Set(lacking.map(rightText))].join(", ")}`;
  }
  if (wanted.roleRef === undefined) return undefined;
  const { kind, name } = wanted.roleRef;
  if (found.roleRef?.kind !== kind || found.roleRef?.name !== name) return `does not bind ${kind} ${name}`;
  const bound = found.subjects ?? [];
  const unbound = (wanted.subjects ?? []).find(
    (subject) =>
      !bound.some((each) => (["kind", "name", "namespace"] as const).every((key) => each[key] === subject[key])),
  );
  return unbound === undefined ? undefined : `does not bind it to ${unbound.kind} ${unbound.namespace}/${unbound.name}`;
}

function titleOf({ kind, metadata, rules, roleRef }: Grant): string {
  const name = `${kind} ${metadata.name}`;
  if (rules !== undefined) return `${name} allows what is needed`;
  return roleRef === undefined ? `${name} is there` : `${name} binds ${roleRef.kind} ${roleRef.name}`;
}

function troubleOf(wanted: Grant, found: Grant | undefined): Trouble | undefined {
  const name = `${wanted.kind} ${wanted.metadata.name}`;
  const link = docs("cli.md#rights");
  const problem = found === undefined ? "is not there" : lackOf(wanted, found);
  if (problem === undefined) return undefined;
  return {
    problem: `${name} ${problem}`,
    remedy: "apply the chart again, with the values it was installed with",
    link,
  };
}

/** The permissions of the installer and of the plugin. */
export function rightsFindings({ grants }: Snapshot): readonly Finding[] {
  const category = new Category("linkerd-cni-rights");
  return grants.flatMap(({ wanted, found }) => {
    const what = titleOf(wanted);
    return "value" in found
      ? [category.judge(what, troubleOf(wanted, found.value))]
      : ifUnreadable(category, what, found);
  });
}
