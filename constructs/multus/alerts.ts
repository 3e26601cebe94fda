import { concat, type Input, type Refs, text } from "../../helm/index";
import { type Alert, alertGroup, VALUE } from "../monitoring/alert";
import { added } from "../monitoring/promql";
import type { MultusValues } from "./values";

const WINDOW = "15m";
/** A short outage of the API server may cause fewer failures. */
const FEW = 5;
/**
 * A certificate is renewed when a third of its lifetime is left; less than a sixth means a failure. In seconds per hour
 * of validity.
 */
const SIXTH_OF_HOUR = 600;
const metric = (name: string, labels = "") => `linkerd_multus_${name}${labels}`;
/** Only the leader writes. */
const LEADS = `${metric("leader")} == 1`;

function alerts({ podMonitor, webhook }: Refs<MultusValues>, job: Input<string>): readonly Alert[] {
  const lacking = `${metric("definitions", '{state="wanted"}')} - ignoring (state) ${metric("definitions", '{state="ours"}')}`;
  const failed = added(metric("webhook_requests_total", '{result="failed"}'), WINDOW);
  return [
    {
      alert: "LinkerdMultusDown",
      // The job's name is known only for the targets of our PodMonitor.
      only: podMonitor.enabled,
      severity: "critical",
      expr: concat('absent(up{job="', job, '"} == 1)'),
      for: "5m",
      summary: "No replica of the Multus operator answers",
      description: "With failurePolicy Fail, no pod can be created in the namespaces that the webhook selects.",
    },
    {
      alert: "LinkerdMultusCertificateExpiring",
      severity: "critical",
      expr: concat(
        `${metric("certificate_expiry_timestamp_seconds")} - time() < `,
        text(webhook.certificateValidityHours),
        ` * ${SIXTH_OF_HOUR}`,
      ),
      for: "10m",
      summary: "The webhook's certificate is not renewed",
      description: "{{ $labels.pod }} serves no certificate, or one with less than a sixth of its lifetime left.",
    },
    {
      alert: "LinkerdMultusCaBundleContested",
      severity: "critical",
      expr: `max(${metric("ca_bundle_contested")}) == 1`,
      for: "5m",
      summary: "Another program sets the webhook's caBundle",
      description:
        "Without the operator's caBundle the API server cannot call the webhook; the operator's log names the writer.",
    },
    {
      alert: "LinkerdMultusWebhookFailing",
      severity: "warning",
      expr: `sum by (pod) (${failed}) >= ${FEW}`,
      summary: "The webhook cannot judge pods",
      description: `{{ $labels.pod }} could not answer ${VALUE} reviews in 15 minutes because the API server did not answer.`,
    },
    {
      alert: "LinkerdMultusDefinitionsMissing",
      severity: "warning",
      expr: `${lacking} > 0 and ${LEADS}`,
      for: "15m",
      summary: "Namespaces lack their NetworkAttachmentDefinition",
      description: `Namespaces that need the operator's definition and have none: ${VALUE}. Pods that name it do not start.`,
    },
    {
      alert: "LinkerdMultusConfigInvalid",
      severity: "warning",
      expr: `${metric("config_valid")} == 0 and ${LEADS}`,
      for: "10m",
      summary: "The plugin's configuration is missing or malformed",
      description:
        "No NetworkAttachmentDefinition is created or changed; an Event on the ConfigMap says what is wrong.",
    },
  ];
}

/** The rule groups of the operator's PrometheusRule. */
export const multusAlerts = (values: Refs<MultusValues>, job: Input<string>) => [
  alertGroup("linkerd-multus", alerts(values, job), values.prometheusRule.runbookUrl),
];
