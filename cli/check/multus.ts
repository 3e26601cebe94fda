import { MULTUS_NAME } from "../../cni/contract";
import { docs } from "../links";
import { ifUnreadable } from "./access";
import { Category, type Finding, type Trouble } from "./finding";
import { isChained, type WebhookConfiguration } from "./objects";
import { known, type Snapshot } from "./snapshot";

const category = new Category(MULTUS_NAME);
const link = docs("multus.md");

/** Under Multus, the parts that call the plugin must exist. */
function caller(): Finding {
  return category.odd("webhook linkerd-multus is there", {
    problem:
      "the plugin is not chained (chained: false), and there is neither a webhook that makes Multus call it, nor the NRI plugin",
    remedy:
      "install the chart linkerd-multus, and annotate meshed namespaces with linkerd.io/multus=enabled; or set nri.enabled or chained to true",
    link,
  });
}

function certificates({ webhooks = [] }: WebhookConfiguration): Finding {
  const bare = webhooks.find(({ clientConfig }) => !clientConfig?.caBundle);
  const trouble: Trouble = {
    problem: `webhook ${bare?.name} has no caBundle: the API server cannot call it`,
    remedy: "see the log of the operator, or of cert-manager, which write it",
    link: docs("multus.md#certificates"),
  };
  return category.judge("webhook linkerd-multus has its certificate", bare === undefined ? undefined : trouble);
}

function operator({ operator: found }: Snapshot, { webhooks = [] }: WebhookConfiguration): readonly Finding[] {
  const what = "an operator answers for the webhook";
  if ("problem" in found) return ifUnreadable(category, what, found);
  const { replicas = 1 } = found.value?.spec ?? {};
  const { readyReplicas = 0 } = found.value?.status ?? {};
  if (readyReplicas > 0) return [category.good(what, `${readyReplicas} of ${replicas} ready`)];
  const strict = webhooks.some(({ failurePolicy }) => failurePolicy === "Fail");
  const effect = strict ? "pods are not created" : "meshed pods are not redirected";
  const where = found.value?.metadata.namespace ?? MULTUS_NAME;
  const trouble: Trouble = {
    problem: `no replica of Deployment linkerd-multus is ready: ${effect}`,
    remedy: `see: kubectl describe pods -n ${where} -l app.kubernetes.io/name=linkerd-multus`,
    link,
  };
  return [category.bad(what, trouble)];
}

function definitions({ definitions: found }: Snapshot): readonly Finding[] {
  const what = "Multus is installed";
  if ("problem" in found) return ifUnreadable(category, what, found);
  const trouble: Trouble = {
    problem: "the API server does not know NetworkAttachmentDefinitions",
    remedy: "install Multus before the chart linkerd-multus",
    link,
  };
  return [category.judge(what, found.value === undefined ? trouble : undefined)];
}

/** If Multus should call the plugin: whether it does. */
export function multusFindings(snapshot: Snapshot): readonly Finding[] {
  const { webhook, daemonSet, nri } = snapshot;
  if ("problem" in webhook) return ifUnreadable(category, "webhook linkerd-multus", webhook);
  if (webhook.value === undefined) {
    const isRedirected = isChained(known(daemonSet)) || "problem" in nri || nri.value !== undefined;
    return isRedirected ? [] : [caller()];
  }
  return [...definitions(snapshot), certificates(webhook.value), ...operator(snapshot, webhook.value)];
}
