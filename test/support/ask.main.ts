/** Sends one request to the API server in its argument, with a time limit in milliseconds, and prints the answer, or why there is none. */
import { reasonOf } from "../../cni/errors";
import type { ApiServer } from "../../kubernetes/api-server";
import { httpsTransport } from "../../kubernetes/transport";
import { args, start, write } from "../../system/program";

start(async () => {
  const [server = "", limit] = args;
  const limitMs = Number(limit);
  const send = httpsTransport(JSON.parse(server) as ApiServer, { connectMs: limitMs });
  const found = await send({ path: "/api/v1/namespaces/shop/pods/cart-1", deadlineMs: limitMs }).then(
    ({ status, body }) => ({ status, body }),
    (error: unknown) => ({ error: reasonOf(error) }),
  );
  send.close();
  write(JSON.stringify(found));
  return 0;
});
