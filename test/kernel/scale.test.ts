/** API requests of the programs of twenty nodes: `npm run scale` with few nodes, and for a short time. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { root } from "../../build/paths";
import { realApiMissing } from "../support/real-api";
import { missing, suite } from "../support/requirements";

const NODES = 20;
const REST_SECONDS = 20;
/** A node. */
const STARTS = 2;

/** The only requests that a node's pod may send: its user, and whether they are limited to this node. */
const ALLOWED = [
  "create serviceaccounts/token as linkerd-cni",
  "get daemonsets as linkerd-cni",
  "get namespaces as linkerd-cni",
  "get nodes as linkerd-cni",
  "get nodes from memory as linkerd-cni",
  "get pods as linkerd-cni",
  "get pods from memory as linkerd-cni",
  "list pods as linkerd-cni",
  "list pods from memory as linkerd-cni",
  "watch pods as linkerd-cni",
];

type Counts = Readonly<Record<string, number>>;

const sum = (counts: Counts) => Object.values(counts).reduce((all, each) => all + each, 0);

suite(
  "twenty nodes and a real API server",
  realApiMissing() ?? missing({ root: true, programs: ["unshare", "ip", "nft", "python3"] }),
  () => {
    let phases: Readonly<
      Record<"start" | "rest" | "rollout" | "API server down" | "API server back" | "pod starts", Counts>
    >;
    let warnings: string;
    beforeAll(async () => {
      const options = {
        nodes: NODES,
        "start-seconds": 2,
        "rest-seconds": REST_SECONDS,
        waves: 1,
        "down-seconds": 5,
        "back-seconds": 15,
        starts: STARTS,
      };
      const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
      // It fails where a list or a watch is of more than one node's objects, or an ADD fails.
      const run = ["run", "--silent", "scale", "--", "--json", ...flags];
      const { stdout, stderr } = await promisify(execFile)("npm", run, { cwd: root });
      phases = JSON.parse(stdout);
      warnings = stderr;
    }, 600_000);

    test("Node warns of nothing in it", () => expect(warnings).not.toContain("Warning"));

    test("nodes request only what they need", () => {
      const kinds = new Set(Object.values(phases).flatMap((counts) => Object.keys(counts)));
      expect([...kinds].map((kind) => kind.replace(/ \(\d+\)/, "")).filter((kind) => !ALLOWED.includes(kind))).toEqual(
        [],
      );
    });

    test("a start takes a token and a list a node, and four times as many at most where the machine is slow", () => {
      for (const kinds of [["create serviceaccounts/token"], ["list pods", "list pods from memory"]]) {
        const count = kinds.reduce((all, kind) => all + (phases.start[`${kind} as linkerd-cni`] ?? 0), 0);
        expect(count).toBeGreaterThanOrEqual(NODES);
        expect(count).toBeLessThanOrEqual(4 * NODES);
      }
    });

    test("a start does not have the API server read the node from etcd", () => {
      expect(phases.start["get nodes from memory as linkerd-cni"]).toBeGreaterThanOrEqual(NODES);
      expect(phases.start["get nodes as linkerd-cni"]).toBeUndefined();
    });

    test("a meshed pod of `linkerd inject --manual` takes two requests, more only if they are sent again", () => {
      for (const what of ["pods", "namespaces"]) {
        const count = phases["pod starts"][`get ${what} as linkerd-cni`];
        expect(count).toBeGreaterThanOrEqual(NODES * STARTS);
        expect(count).toBeLessThanOrEqual(2 * NODES * STARTS);
      }
    });

    test("at rest a node asks at most once in a second, however slow the machine is", () => {
      expect(sum(phases.rest)).toBeLessThanOrEqual(NODES * REST_SECONDS);
    });
  },
);
