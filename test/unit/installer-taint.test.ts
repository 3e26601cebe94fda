import { StartupTaint } from "../../installer/taint";
import { httpsTransport } from "../../kubernetes/transport";
import { ApiStub, json } from "../support/api-server";

const KEY = "linkerd.io/cni-not-ready";
const taint = { key: KEY, effect: "NoSchedule" };

let api: ApiStub;
let patches: { readonly type: string | undefined; readonly body: unknown }[];
let log: string[];
let taints: object[] | undefined;
/** The answer to a patch. */
let patchStatus: number;
let now: number;

beforeEach(async () => {
  [patches, log, taints, patchStatus, now] = [[], [], [taint], 200, 0];
  api = await ApiStub.start((request, response) => {
    if (request.method === "GET") return json(200, { spec: taints === undefined ? {} : { taints } })(request, response);
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      patches.push({ type: request.headers["content-type"], body: JSON.parse(body) });
      json(patchStatus, {})(request, response);
    });
  });
});

afterEach(() => api.close());

function startupTaint() {
  const write = (level: string) => (message: string) => void log.push(`${level}: ${message}`);
  return new StartupTaint({
    connect: () => httpsTransport({ host: "127.0.0.1", port: api.port, ca: api.ca, token: "secret" }),
    node: "node-1",
    key: KEY,
    clock: { now: () => now, random: () => 1 },
    log: {
      trace: write("trace"),
      debug: write("debug"),
      info: write("info"),
      warn: write("warn"),
      error: write("error"),
    },
  });
}

test("is removed once, by a patch of the installer's node", async () => {
  const startup = startupTaint();
  await Promise.all([startup.lift(), startup.lift()]);
  await startup.lift();
  expect(api.requests).toEqual(["/api/v1/nodes/node-1", "/api/v1/nodes/node-1"]);
  expect(patches).toEqual([
    {
      type: "application/json-patch+json",
      body: [
        { op: "test", path: "/spec/taints/0", value: taint },
        { op: "remove", path: "/spec/taints/0" },
      ],
    },
  ]);
  expect(log).toEqual([`info: removed taint ${KEY} from node node-1: pods that start now are chained`]);
});

test("a refusal is logged once, and tried again, less and less often", async () => {
  patchStatus = 422;
  const startup = startupTaint();
  for (now = 0; now < 300_000; now += 1_000) await startup.lift();
  // At 0, 5, 15, 35, 75 s, and then once a minute.
  expect(patches).toHaveLength(8);
  patches = [];
  expect(log).toEqual([`warn: taint ${KEY} cannot be removed yet: patch nodes node-1: 422: {}`]);
  patchStatus = 200;
  now += 60_000;
  await startup.lift();
  expect(startup.isDue).toBe(false);
  expect(patches).toHaveLength(1);
});

test("is checked again every five minutes, and when the node may have registered again", async () => {
  const startup = startupTaint();
  await startup.lift();
  now = 299_999;
  await startup.lift();
  expect(api.requests).toHaveLength(2);
  now = 300_000;
  await startup.lift();
  expect(patches).toHaveLength(2);
});
