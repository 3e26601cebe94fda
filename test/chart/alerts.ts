import { checkRules, promtool, type RuleFile, testRules } from "./promtool";

type Series = Readonly<Record<string, string>>;

/** Cases in which an alert fires, and in which it must not. */
interface Case {
  readonly fires: Series;
  readonly atMinute: number;
  /** Labels besides the common ones and severity. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The description after its common beginning. */
  readonly says: string;
  /** Series with which it does not fire at that minute, each for a reason. */
  readonly quiet: Readonly<Record<string, Series>>;
}

/** By the alerts' names. */
export type Cases = Readonly<Record<string, Case>>;

interface Common {
  /** The labels of every alert. */
  readonly labels: Readonly<Record<string, string>>;
  /** The beginning of every description. */
  readonly begin: string;
}

const suite = promtool === undefined ? describe.skip : describe;
const missing = promtool === undefined ? " (no promtool: set PROMTOOL or put it on PATH)" : "";

/** A suite that needs the real promtool. */
export const promtoolSuite = (title: string, body: () => void): void => suite(`${title}${missing}`, body);

/** Checks all rules with promtool, and each alert in its cases. */
export function testAlerts(file: RuleFile, cases: Cases, common: Common): void {
  const rules = file.groups.flatMap(({ rules }) => rules);

  test("promtool accepts them", () => {
    expect(checkRules(file)).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  test("each has a severity, a summary, a description, a runbook, and a case here", () => {
    expect(rules.map(({ alert }) => alert).sort()).toEqual(Object.keys(cases).sort());
    for (const { alert, labels, annotations } of rules) {
      expect(labels?.["severity"]).toMatch(/^(warning|critical)$/);
      expect(annotations).toEqual({
        summary: expect.stringMatching(/^[A-Z].*[a-z]$/),
        description: expect.stringMatching(/^.*\.$/),
        runbook_url: `https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks/${alert}.md`,
      });
    }
  });

  describe.each(Object.entries(cases))("%s", (alert, { fires, atMinute, labels, says, quiet }) => {
    const { annotations, labels: own } = rules.find((rule) => rule.alert === alert) ?? {};
    const description = `${common.begin}${says}`;
    const told = {
      exp_labels: { ...common.labels, ...own, ...labels },
      exp_annotations: { ...annotations, description },
    };

    test("fires", () => {
      expect(testRules(file, { alert, series: fires, atMinute, says: [told] })).toContain("SUCCESS");
    });

    test.each(Object.entries(quiet))("does not fire: %s", (_, series) => {
      expect(testRules(file, { alert, series, atMinute, says: [] })).toContain("SUCCESS");
    });
  });
}
