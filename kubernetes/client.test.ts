import type { ApiResponse } from "./api-server";
import { KubernetesClient } from "./client";
import { ApiError, isAlreadyExists, isConflict, isForbidden, isNotFound, isTooManyRequests } from "./errors";
import { pathOf, resource, resources } from "./resources";
import type { ApiRequest } from "./transport";

/** A client and its requests. */
function clientOf(...answers: (Partial<ApiResponse> | object)[]) {
  const sent: ApiRequest[] = [];
  const client = new KubernetesClient(async (call) => {
    sent.push(call);
    const answer = answers.shift() ?? {};
    return "status" in answer && typeof answer.status === "number"
      ? (answer as ApiResponse)
      : { status: 200, body: JSON.stringify(answer) };
  });
  return { client, sent };
}

const cart = { namespace: "shop", name: "cart" };
const status = (code: number, reason: string, more: object = {}) => ({
  status: code,
  body: JSON.stringify({ kind: "Status", message: `because of ${reason}`, reason, ...more }),
});

test("paths are those of the API", () => {
  expect(pathOf(resources.pods)).toBe("/api/v1/pods");
  expect(pathOf(resources.pods, cart)).toBe("/api/v1/namespaces/shop/pods/cart");
  expect(pathOf(resources.nodes, { name: "a/b" })).toBe("/api/v1/nodes/a%2Fb");
  expect(pathOf(resource("apps/v1", "DaemonSet", "daemonsets"), cart)).toBe(
    "/apis/apps/v1/namespaces/shop/daemonsets/cart",
  );
});

test("an object is read; find returns undefined for a missing one", async () => {
  const { client, sent } = clientOf({ metadata: cart }, status(404, "NotFound"), status(404, "NotFound"));
  expect(await client.get(resources.pods, cart)).toEqual({ metadata: cart });
  expect(sent).toEqual([{ path: "/api/v1/namespaces/shop/pods/cart", deadlineMs: 5_000 }]);
  expect(await client.find(resources.pods, cart)).toBeUndefined();
  const error = await client.get(resources.pods, cart, { deadlineMs: 7 }).catch((thrown: unknown) => thrown);
  expect(isNotFound(error)).toBe(true);
  expect(String(error)).toBe("ApiError: get pods shop/cart: 404: because of NotFound");
  expect(sent[2]?.deadlineMs).toBe(7);
});

test("find does not hide other refusals", async () => {
  const { client } = clientOf(status(403, "Forbidden"));
  expect(isForbidden(await client.find(resources.nodes, { name: "n" }).catch((error: unknown) => error))).toBe(true);
});

test("a list is read page by page, with its selectors on each", async () => {
  const { client, sent } = clientOf(
    { metadata: { continue: "next" }, items: [{ metadata: { name: "a" } }] },
    { metadata: { continue: "" }, items: [{ metadata: { name: "b" } }] },
  );
  const found = await client.list(resources.pods, { namespace: "shop", labelSelector: "a=b", resourceVersion: "0" });
  expect(found.map(({ metadata }) => metadata?.name)).toEqual(["a", "b"]);
  expect(sent.map(({ path }) => path)).toEqual([
    "/api/v1/namespaces/shop/pods?labelSelector=a%3Db&limit=500&resourceVersion=0",
    "/api/v1/namespaces/shop/pods?labelSelector=a%3Db&limit=500&continue=next",
  ]);
});

test("objects are written with their kind", async () => {
  const { client, sent } = clientOf({}, {}, {}, { status: 201, body: '{"metadata":{}}' }, {}, {}, {});
  const lease = { metadata: cart, spec: {} };
  const typed = { ...lease, apiVersion: "coordination.k8s.io/v1", kind: "Lease" };
  const collection = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";
  await client.create(resources.leases, lease);
  await client.replace(resources.leases, lease);
  const options = { fieldManager: "me" };
  expect(await client.apply(resources.leases, lease, { ...options, force: true })).toMatchObject({ created: false });
  expect(await client.apply(resources.leases, lease, options)).toEqual({ object: { metadata: {} }, created: true });
  await client.patch(resources.leases, cart, { type: "json", body: [] });
  await client.delete(resources.leases, cart, { preconditions: { uid: "1" }, gracePeriodSeconds: 0 });
  const apply = { method: "PATCH", contentType: "application/apply-patch+yaml", body: typed };
  expect(sent).toEqual(
    [
      { method: "POST", path: collection, body: typed },
      { method: "PUT", path: `${collection}/cart`, body: typed },
      { ...apply, path: `${collection}/cart?fieldManager=me&force=true` },
      { ...apply, path: `${collection}/cart?fieldManager=me&force=false` },
      { method: "PATCH", path: `${collection}/cart`, contentType: "application/json-patch+json", body: [] },
      {
        method: "DELETE",
        path: `${collection}/cart`,
        body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid: "1" }, gracePeriodSeconds: 0 },
      },
    ].map((call) => ({ ...call, deadlineMs: 5_000 })),
  );
});

test("a refusal has its status, reason, causes and Retry-After", async () => {
  const refusal = async (answer: object) => {
    const { client } = clientOf(answer);
    return client.create(resources.pods, { metadata: cart }).catch((error: unknown) => error as ApiError);
  };
  const ending = await refusal(status(403, "Forbidden", { details: { causes: [{ reason: "NamespaceTerminating" }] } }));
  expect(ending).toBeInstanceOf(ApiError);
  expect(ending).toMatchObject({ status: 403, reason: "Forbidden", causes: ["NamespaceTerminating"] });
  const exists = await refusal(status(409, "AlreadyExists"));
  expect([isAlreadyExists(exists), isConflict(exists)]).toEqual([true, false]);
  const conflict = await refusal(status(409, "Conflict"));
  expect([isAlreadyExists(conflict), isConflict(conflict)]).toEqual([false, true]);
  const busy = await refusal(status(429, "TooManyRequests", { details: { retryAfterSeconds: 3 } }));
  expect([isTooManyRequests(busy), (busy as ApiError).retryAfter]).toEqual([true, 3]);
  expect(await refusal({ status: 429, body: "slow", retryAfter: "4" })).toMatchObject({ reason: "", retryAfter: 4 });
  const odd = await refusal({ status: 502, body: `<html>${"x".repeat(400)}` });
  expect((odd as ApiError).message).toBe(`create pods shop/cart: 502: <html>${"x".repeat(294)}`);
  expect(isForbidden(new Error("no"))).toBe(false);
});
