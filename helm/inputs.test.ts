import { App, Chart } from "cdk8s";
import { HelmChart, inputsOf, ref, value, valuesOf } from "./index";

const schema = valuesOf({
  replicas: value.integer({ description: "How many pods", default: 2, min: 1, max: 9 }),
  resources: value.object({
    description: "Resources",
    default: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "128Mi" } },
  }),
  web: { labels: value.map({ description: "Labels", default: { a: "1" } }) },
});

const read = (given: object) => inputsOf(new Chart(new App(), "plain"), schema, { given });

test("a value that is not given is the default, and in a Helm chart a reference", () => {
  expect(read({}).values).toMatchObject({ replicas: 2, web: { labels: { a: "1" } } });
  const { values } = inputsOf(new HelmChart(new App(), "chart"), schema, { given: { replicas: 3 } });
  expect(values).toMatchObject({ replicas: 3, resources: { $helm: { kind: "map" } } });
});

test("a map is merged over its default as by Helm, and null removes a key or the whole map", () => {
  const { values } = read({ resources: { requests: { cpu: "1" }, limits: null }, web: { labels: { b: "2" } } });
  expect(values).toMatchObject({ web: { labels: { a: "1", b: "2" } } });
  expect(values.resources).toEqual({ requests: { cpu: "1", memory: "64Mi" } });
  expect(read({ resources: {} }).values.resources).toHaveProperty("limits.memory", "128Mi");
  expect(read({ resources: null }).values.resources).toEqual({});
});

test("every problem is reported, with similar names", () => {
  expect(read({ replicas: 0, web: { label: {} } }).problems).toEqual([
    "replicas: 0 is less than 1",
    "web.label is not a value: did you mean web.labels?",
  ]);
});

test("an expression outside a Helm chart is refused", () => {
  expect(() => read({ replicas: ref("int", "Values", "replicas") })).toThrow("constructs in a HelmChart");
});
