import { Registry } from "./metrics";

test("metrics are in the Prometheus text format, with escaped labels", () => {
  const registry = new Registry("p_");
  const calls = registry.counter({ name: "calls_total", help: "Calls.", labels: ["verb", "code"] });
  const plain = registry.counter({ name: "plain_total", help: "Plain." });
  registry.gauge({ name: "up", help: "Up." }, () => 1);
  registry.gaugeBy({ name: "states", help: "States.", label: "state" }, () => ({ good: 2, bad: 0 }));
  const seconds = registry.histogram({ name: "seconds", help: "Time.", labels: ["verb"] }, [0.1, 1]);
  calls.inc({ code: "", verb: "ADD" });
  calls.inc({ verb: "ADD", code: "" }, 2);
  calls.inc({ verb: 'a"b\\c\n', code: "11" });
  expect(registry.text()).toContain("p_plain_total 0\n");
  plain.inc();
  for (const value of [0.05, 0.1, 0.5, 7]) seconds.observe(value, { verb: "ADD" });
  expect(registry.text()).toBe(`# HELP p_calls_total Calls.
# TYPE p_calls_total counter
p_calls_total{verb="ADD",code=""} 3
p_calls_total{verb="a\\"b\\\\c\\n",code="11"} 1
# HELP p_plain_total Plain.
# TYPE p_plain_total counter
p_plain_total 1
# HELP p_up Up.
# TYPE p_up gauge
p_up 1
# HELP p_states States.
# TYPE p_states gauge
p_states{state="good"} 2
p_states{state="bad"} 0
# HELP p_seconds Time.
# TYPE p_seconds histogram
p_seconds_bucket{verb="ADD",le="0.1"} 2
p_seconds_bucket{verb="ADD",le="1"} 3
p_seconds_bucket{verb="ADD",le="+Inf"} 4
p_seconds_sum{verb="ADD"} 7.65
p_seconds_count{verb="ADD"} 4
`);
});

test("a histogram without labels is there from the start", () => {
  const registry = new Registry();
  registry.histogram({ name: "seconds", help: "Time." }, [1]);
  expect(registry.text()).toContain('seconds_bucket{le="+Inf"} 0\nseconds_sum 0\nseconds_count 0\n');
});

test("a flood of label values ends in one series", () => {
  const registry = new Registry();
  const calls = registry.counter({ name: "calls_total", help: "Calls.", labels: ["verb"] });
  for (let index = 0; index < 1_000; index += 1) calls.inc({ verb: String(index) });
  const lines = registry.text().trim().split("\n");
  expect(lines).toHaveLength(2 + 201);
  expect(lines.at(-1)).toBe('calls_total{verb="other"} 800');
});
