/** OpenShift's user ids for proxies, without a webhook of ours. */
import { Annotation, INJECT_MODES } from "../cni/contract";
import { MAX_ID } from "../cni/ids";
import { ProxyDefault } from "../cni/stanza";
import { matchConstraints, NOT_STATIC } from "./admission";

const modes = `[${INJECT_MODES.map((mode) => JSON.stringify(mode)).join(", ")}]`;

/** An annotation of the pod, or else of its namespace; an empty one counts as absent. */
const annotation = (of: "object" | "namespaceObject", name: string) =>
  `${of}.metadata.?annotations["${name}"].orValue("")`;
const effective = (name: string) =>
  `(${annotation("object", name)} != "" ? ${annotation("object", name)} : ${annotation("namespaceObject", name)})`;

/**
 * A policy that annotates pods that are about to be injected with a user id of their namespace's range. The API server
 * runs these policies before webhooks, and never again: after the injector, the annotation would not be the proxy's id.
 * The proxy's group stays as it is: no security context constraint limits it.
 */
export const proxyUidPolicy = {
  failurePolicy: "Fail",
  reinvocationPolicy: "Never",
  matchConstraints: matchConstraints("CREATE", "pods"),
  matchConditions: [NOT_STATIC],
  variables: [
    { name: "range", expression: `${annotation("namespaceObject", Annotation.uidRange)}.trim()` },
    {
      name: "chosen",
      expression:
        'variables.range.matches("^[0-9]{1,10}[/-][0-9]{1,10}$") && ' +
        `${effective(Annotation.inject)} in ${modes} && ${effective(Annotation.proxyUid)} == ""`,
    },
    { name: "numbers", expression: 'variables.range.replace("-", "/").split("/").map(text, int(text))' },
    {
      name: "last",
      expression:
        'variables.range.contains("-") ? variables.numbers[1] : variables.numbers[0] + variables.numbers[1] - 1',
    },
    {
      name: "uid",
      expression:
        `variables.numbers[0] + ${ProxyDefault.uid} <= variables.last ? ` +
        `variables.numbers[0] + ${ProxyDefault.uid} : variables.numbers[0]`,
    },
    { name: "valid", expression: `variables.numbers[0] <= variables.last && variables.last <= ${MAX_ID}` },
  ],
  mutations: [
    {
      patchType: "ApplyConfiguration",
      applyConfiguration: {
        expression:
          "variables.chosen && variables.valid ? Object{metadata: Object.metadata{annotations: " +
          `{"${Annotation.proxyUid}": string(variables.uid)}}} : Object{}`,
      },
    },
  ],
} as const;
