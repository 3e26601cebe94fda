import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fetchText } from "./io";

const pages: Readonly<Record<string, string>> = {
  "/values.yaml": "proxyUID: 9\n",
  "/large.yaml": "#".repeat(1 << 21),
};

describe("a text by URL", () => {
  let server: Server;
  let host: string;

  beforeAll(async () => {
    server = createServer(({ url = "", headers }, response) => {
      const text = url === "/who" ? headers.authorization : pages[url];
      response.statusCode = text === undefined ? 404 : 200;
      response.end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test("is read", async () => {
    expect(await fetchText(`http://${host}/values.yaml`)).toBe("proxyUID: 9\n");
  });

  test.each([
    ["/none.yaml", "status 404"],
    ["/large.yaml", "more than 1048576 bytes"],
  ])("%s: %s", async (path, problem) => {
    await expect(fetchText(`http://${host}${path}`)).rejects.toThrow(`http://${host}${path}: ${problem}`);
  });

  test("no message quotes the query, or a user and password", async () => {
    await expect(fetchText(`http://${host}/none.yaml?token=SECRET`)).rejects.toThrow(
      new Error(`http://${host}/none.yaml: status 404`),
    );
    await expect(fetchText(`http://me:SECRET@${host}/none.yaml`)).rejects.toThrow(
      new Error(`http://${host}/none.yaml: status 404`),
    );
    await expect(fetchText("http://me:SECRET@:x/none.yaml")).rejects.toThrow(/^(?!.*SECRET)/s);
  });

  test("user and password go into a header", async () => {
    const sent = Buffer.from("me:a/b").toString("base64");
    expect(await fetchText(`http://me:a%2Fb@${host}/who`)).toBe(`Basic ${sent}`);
  });
});
