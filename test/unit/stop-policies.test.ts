import { values } from "../../constructs";
import { baseOf } from "../../constructs/helm/refs";
import { STOP_POLICIES } from "../../installer/settings";

test("the chart offers every policy that a stopping installer knows, and no other", () => {
  expect(baseOf(values.shape.uninstallOnStop).schema).toMatchObject({ options: STOP_POLICIES });
});
