import { Metrics } from "./metrics";

test("metrics are in the Prometheus text format, with escaped labels", () => {
  const metrics = new Metrics();
  const calls = metrics.counter({ name: "calls_total", help: "Calls.", labels: ["verb", "code"] });
  metrics.counter({ name: "plain_total", help: "Plain." });
  metrics.gauge({ name: "up", help: "Up." }, () => 1);
  const seconds = metrics.histogram({ name: "seconds", help: "Time.", labels: ["verb"] }, [0.1, 1]);
  calls.add("ADD", "");
  calls.add("ADD", "");
  calls.add('a"b\\c\n', "11");
  for (const value of [0.05, 0.1, 0.5, 7]) seconds.observe(value, "ADD");
  expect(metrics.text()).toBe(`# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{verb="ADD",code=""} 2
calls_total{verb="a\\"b\\\\c\\n",code="11"} 1
# HELP plain_total Plain.
# TYPE plain_total counter
plain_total 0
# HELP up Up.
# TYPE up gauge
up 1
# HELP seconds Time.
# TYPE seconds histogram
seconds_bucket{verb="ADD",le="0.1"} 2
seconds_bucket{verb="ADD",le="1"} 3
seconds_bucket{verb="ADD",le="+Inf"} 4
seconds_sum{verb="ADD"} 7.65
seconds_count{verb="ADD"} 4
`);
});

test("a flood of label values ends in one series", () => {
  const metrics = new Metrics();
  const calls = metrics.counter({ name: "calls_total", help: "Calls.", labels: ["verb"] });
  for (let index = 0; index < 1_000; index += 1) calls.add(String(index));
  const lines = metrics.text().trim().split("\n");
  expect(lines).toHaveLength(2 + 201);
  expect(lines.at(-1)).toBe('calls_total{verb="other"} 800');
});
