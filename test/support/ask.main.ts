/** Sends one request to the API server in its argument, and prints the answer, or why there is none. */
import { reasonOf } from "../../cni/errors";
import type { ApiServer } from "../../kubernetes/api-server";
import { httpsTransport } from "../../kubernetes/transport";
import { args, start, write } from "../../system/program";

start(async () => {
  const send = httpsTransport(JSON.parse(args[0] ?? "") as ApiServer, { connectMs: 3000 });
  const found = await send({ path: "/api/v1/namespaces/shop/pods/cart-1", deadlineMs: 5000 }).then(
    ({ status, body }) => ({ status, body }),
    (error: unknown) => ({ error: reasonOf(error) }),
  );
  send.close();
  write(JSON.stringify(found));
  return 0;
});
