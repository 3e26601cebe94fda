import type { LinkerdMultusProps } from "../../constructs";
import { type Cases, promtoolSuite, testAlerts } from "./alerts";
import { constructed, linkerdMultus } from "./charts";
import { byName } from "./helm";
import type { RuleFile } from "./promtool";

const NAMESPACE = "linkerd-multus";
const rulesOf = (props: LinkerdMultusProps): RuleFile =>
  byName(constructed(linkerdMultus, props, NAMESPACE))["PrometheusRule/linkerd-multus"]?.["spec"] as RuleFile;

const at = (metric: string, labels: string, pod = "one") =>
  `linkerd_multus_${metric}{pod="${pod}"${labels === "" ? "" : `, ${labels}`}}`;
const up = (pod: string) => `up{job="linkerd-multus/linkerd-multus", pod="${pod}"}`;
const expiry = at("certificate_expiry_timestamp_seconds", "");
const failed = (pod?: string) => at("webhook_requests_total", 'result="failed"', pod);
const leader = (pod?: string) => at("leader", "", pod);
const valid = (pod?: string) => at("config_valid", "", pod);
const contested = (pod?: string) => at("ca_bundle_contested", "", pod);
const definitions = (state: string, pod?: string) => at("definitions", `state="${state}"`, pod);
/** Fifteen days, a sixth of the life that is the default, in seconds; the tests begin at 0. */
const SIXTH = 15 * 86_400;

const cases: Cases = {
  LinkerdMultusDown: {
    fires: { [up("one")]: "1x5 0x20", [up("two")]: "1x5" },
    atMinute: 17,
    says: "With failurePolicy Fail, no pod can be created in the namespaces that the webhook selects.",
    quiet: {
      "one is there": { [up("one")]: "1x30", [up("two")]: "0x30" },
      "they come back": { [up("one")]: "1x5 0x2 1x30" },
    },
  },
  LinkerdMultusCertificateExpiring: {
    fires: { [expiry]: `${SIXTH}x30` },
    atMinute: 12,
    labels: { pod: "one" },
    says: "one serves no certificate, or one with less than a sixth of its lifetime left.",
    quiet: {
      "there is time": { [expiry]: `${SIXTH + 3_600}x30` },
      "it was renewed": { [expiry]: `0x5 ${6 * SIXTH}x30` },
    },
  },
  LinkerdMultusCaBundleContested: {
    fires: { [contested("one")]: "1x30", [contested("two")]: "0x30" },
    atMinute: 7,
    says: "Without the operator's caBundle the API server cannot call the webhook; the operator's log names the writer.",
    quiet: { "it is right": { [contested("one")]: "0x30" }, "it was put right": { [contested("one")]: "1x3 0x30" } },
  },
  LinkerdMultusWebhookFailing: {
    fires: { [failed()]: "_x20 5x5" },
    atMinute: 22,
    labels: { pod: "one" },
    says: "one could not answer 5 reviews in 15 minutes because the API server did not answer.",
    quiet: {
      "a few of each replica": { [failed()]: "_x20 4x5", [failed("two")]: "_x20 4x5" },
      "others' mistakes": { [at("webhook_requests_total", 'result="refused"')]: "0+10x30" },
    },
  },
  LinkerdMultusDefinitionsMissing: {
    fires: { [definitions("wanted")]: "5x30", [definitions("ours")]: "3x30", [leader()]: "1x30" },
    atMinute: 17,
    labels: { pod: "one" },
    says: "Namespaces that need the operator's definition and have none: 2. Pods that name it do not start.",
    quiet: {
      "all are there": { [definitions("wanted")]: "5x30", [definitions("ours")]: "5x30", [leader()]: "1x30" },
      "they are being made": { [definitions("wanted")]: "5x30", [definitions("ours")]: "0x9 5x20", [leader()]: "1x30" },
      "a replica that does not lead": {
        [definitions("wanted")]: "5x30",
        [definitions("ours")]: "3x30",
        [leader()]: "0x30",
      },
    },
  },
  LinkerdMultusConfigInvalid: {
    fires: { [valid()]: "0x30", [leader()]: "1x30", [valid("two")]: "0x30", [leader("two")]: "0x30" },
    atMinute: 12,
    labels: { pod: "one" },
    says: "No NetworkAttachmentDefinition is created or changed; an Event on the ConfigMap says what is wrong.",
    quiet: { "it is right": { [valid()]: "1x30", [leader()]: "1x30" } },
  },
};

promtoolSuite("the operator's alerts", () => {
  const enabled = { enabled: true };
  testAlerts(rulesOf({ podMonitor: enabled, prometheusRule: enabled }), cases, { labels: {}, begin: "" });

  test("without a PodMonitor it is not known how its targets are called", () => {
    expect(JSON.stringify(rulesOf({ prometheusRule: enabled }))).not.toContain("LinkerdMultusDown");
  });
});
