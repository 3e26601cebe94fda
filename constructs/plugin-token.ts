import type { k8s } from "cdk8s-plus-27";
import { PLUGIN_ACCOUNT } from "../cni/contract";
import { group, type Templated, value } from "../helm/index";

export const pluginToken = group("Token of the plugin on the node", {
  dedicated: value.boolean({
    default: true,
    description:
      "Give the plugin on the node a token of a service account of its own, which may only read single pods, " +
      "namespaces and the service `kubernetes`; if it is refused, or with false, the plugin uses the installer's",
  }),
  expirationSeconds: value.integer({
    min: 600,
    max: 2 ** 31 - 1,
    default: 86400,
    description: "Lifetime of this token in seconds; it is renewed after 70 to 80 percent of it",
  }),
  onNode: value.boolean({
    default: true,
    description:
      "Write the token into the plugin's kubeconfig on the node, for when the installer does not answer; with false " +
      "meshed pods that have to be looked up start only while it does; needs `pluginLog`",
  }),
});

type Rules = readonly Templated<k8s.PolicyRule>[];

/** Only the plugin's requests. */
export const pluginRules: Rules = [
  { apiGroups: [""], resources: ["pods", "namespaces"], verbs: ["get"] },
  // It reads the one in the namespace default. A role in that namespace would require permissions there to install the
  // chart.
  { apiGroups: [""], resources: ["services"], resourceNames: ["kubernetes"], verbs: ["get"] },
];

/** The installer's permission to create tokens of this account. */
export const tokenRules: Rules = [
  { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: [PLUGIN_ACCOUNT], verbs: ["create"] },
];
