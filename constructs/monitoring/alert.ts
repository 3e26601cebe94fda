import { concat, type Input, when } from "../../helm/index";

/** One alert. Its page in docs/runbooks has the same name. */
export interface Alert {
  readonly alert: string;
  /** `warning` or `critical`. */
  readonly severity: Input<string>;
  readonly expr: Input<string>;
  /** How long the expression must hold; if absent, once is enough. */
  readonly for?: Input<string>;
  readonly summary: string;
  readonly description: string;
  /** If absent, the alert does not depend on values. */
  readonly only?: Input<boolean>;
}

/** The value as a whole number. */
export const VALUE = '{{ printf "%.0f" $value }}';

function rule({ alert, severity, expr, for: duration, summary, description }: Alert, runbooks: Input<string>) {
  return {
    alert,
    expr,
    for: duration,
    labels: { severity },
    annotations: { summary, description, runbook_url: concat(runbooks, `/${alert}.md`) },
  };
}

/** A group of a PrometheusRule, in the form of Prometheus' own rule files. */
export const alertGroup = (name: string, alerts: readonly Alert[], runbooks: Input<string>) => ({
  name,
  rules: alerts.map((alert) => when(alert.only ?? true, rule(alert, runbooks))),
});
