import type { Pod } from "./pod";
import { Roster } from "./roster";

let roster: Roster;
let overflows: number;

beforeEach(() => {
  overflows = 0;
  roster = new Roster(
    () => 0,
    () => {
      overflows += 1;
    },
  );
});

const apply = (object: Pod, type: "ADDED" | "MODIFIED" = "ADDED") => roster.apply({ type, object });
const names = () => [...roster.all()].map(({ name }) => name);

const ended = (phase: string, exitCode: number) => ({
  phase,
  initContainerStatuses: [{ name: "linkerd-network-validator", state: { terminated: { exitCode } } }],
});
const jobsPod = (name: string, status: NonNullable<Pod["status"]>): Pod => ({
  metadata: { name, uid: name },
  spec: { restartPolicy: "Never" },
  status,
});

test("pods that are over take no place, however many there are", () => {
  for (let index = 0; index < 3_000; index++) {
    apply(jobsPod(`done-${index}`, ended("Succeeded", 0)));
    apply(jobsPod(`failed-${index}`, ended("Failed", 0)));
  }
  apply(jobsPod("broken", ended("Failed", 95)));
  expect(names()).toEqual(["broken"]);
  expect(overflows).toBe(0);
});

test("a pod that ends gives its place back, and is not audited any more", () => {
  const metadata = { name: "web", uid: "web" };
  const containerStatuses = [{ name: "linkerd-proxy", ready: true, state: { running: {} } }];
  apply({ metadata, status: { containerStatuses } });
  const [ward] = [...roster.all()];
  expect(ward?.pod).toBeDefined();
  apply({ metadata, status: { phase: "Failed" } }, "MODIFIED");
  expect(names()).toEqual([]);
  expect(ward?.pod).toBeUndefined();
});
