import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { authority } from "../system/certificates.testing";

/** An object of the API, with the fields that the plugin reads. */
export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: object;
}

/** A small API server over TLS: it answers GET for given objects, to clients with its token. */
export class ApiServer {
  /** Requested paths, in order. */
  readonly requests: string[] = [];

  private constructor(
    private readonly server: Server,
    /** PEM certificate that clients must trust. */
    readonly ca: string,
    readonly token: string,
  ) {}

  static async start(objects: ReadonlyMap<string, ApiObject>, token: string): Promise<ApiServer> {
    const { cert, key } = authority("demo API server", { names: ["127.0.0.1"] });
    const server = createServer({ cert, key });
    const api = new ApiServer(server, cert, token);
    server.on("request", (request, response) => {
      const path = request.url ?? "";
      api.requests.push(path);
      const [status, body] = api.answer(objects.get(path), request.headers.authorization);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return api;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private answer(object: ApiObject | undefined, authorization: string | undefined): [number, object] {
    const failure = (code: number, reason: string) => ({ kind: "Status", status: "Failure", code, reason });
    if (authorization !== `Bearer ${this.token}`) return [401, failure(401, "Unauthorized")];
    return object === undefined ? [404, failure(404, "NotFound")] : [200, object];
  }
}
