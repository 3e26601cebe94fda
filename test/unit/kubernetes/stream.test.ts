import { httpsStreams } from "../../../kubernetes/transport";
import { linesOf } from "../../../system/http/client";
import { ApiStub } from "../../support/api-server";

let api: ApiStub;
afterEach(() => api.close());

/** The result of a watch whose server sends a line and then does something else. @param idleMs after which it is idle */
async function read(then: (end: () => void) => void, idleMs = 60_000): Promise<readonly string[]> {
  api = await ApiStub.start((_, response) => {
    response.writeHead(200).write("one\n");
    then(() => response.destroy());
  });
  const server = { host: "127.0.0.1", port: api.port, ca: api.ca, token: "token" };
  const limits = { connectMs: 60_000, idleMs, signal: new AbortController().signal };
  const { parts } = await httpsStreams(() => server)("/", limits);
  const told: string[] = [];
  for await (const line of linesOf(parts)) told.push(line);
  return told;
}

test("an idle one ends without an error, since there are no bookmarks if a kind never changes", async () => {
  expect(await read(() => undefined, 300)).toEqual(["one"]);
});

test("one that breaks is an error", async () => {
  await expect(read((end) => setTimeout(end, 20))).rejects.toThrow("API server 127.0.0.1:");
});
