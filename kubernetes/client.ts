import { ApiError, isNotFound } from "./errors";
import { apiVersionOf, pathOf, type Resource } from "./resources";
import { type ApiRequest, PAGE, smallerPage, type Transport } from "./transport";
import type { KubernetesObject, ObjectMeta } from "./types";

/** Default milliseconds for a request. */
const DEADLINE_MS = 5_000;

/** The name of one object. */
interface ObjectRef {
  readonly name: string;
  /** Undefined for objects without a namespace. */
  readonly namespace?: string | undefined;
}

interface CallOptions {
  /** Milliseconds for the whole request. @default the client's */
  readonly deadlineMs?: number;
}

interface ListOptions extends CallOptions {
  /** @default every namespace */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** "0": any version in the server's cache. @default the newest */
  readonly resourceVersion?: string | undefined;
  /** Objects per page. @default 500 */
  readonly limit?: number;
}

/** One page of a list. */
export interface List<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[];
}

interface ApplyOptions extends CallOptions {
  /** The owner of the applied fields. */
  readonly fieldManager: string;
  /** Take over fields that others own. @default false: a conflict */
  readonly force?: boolean;
}

interface Patch {
  readonly type: "json" | "merge";
  readonly body: unknown;
}

interface DeleteOptions extends CallOptions {
  /** Delete only the object with this UID; otherwise the request is a conflict. */
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };
  readonly gracePeriodSeconds?: number;
}

/** An object with its name. */
type Named = KubernetesObject & { readonly metadata: ObjectMeta & { readonly name: string } };

const PATCH_TYPES = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
} as const;
/** JSON is also YAML, and API servers before 1.32 know only this media type. */
const APPLY_TYPE = "application/apply-patch+yaml";
const CREATED = 201;

/** A query of the defined fields; empty without any. */
export function query(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(Object.fromEntries(given))}`;
}

const refOf = ({ metadata }: Named): ObjectRef => ({ name: metadata.name, namespace: metadata.namespace });

const placeOf = ({ name, namespace }: Partial<ObjectRef>) =>
  [namespace, name].filter((part) => part !== undefined).join("/");

/**
 * Typed requests to a Kubernetes API server. Each rejects with an {@link ApiError} if the server refuses it, and with
 * an `ApiUnreachable` without an answer.
 */
export class KubernetesClient {
  private readonly deadlineMs: number;

  /** @param options `deadlineMs`: milliseconds for one request. @default 5 s */
  constructor(
    private readonly send: Transport,
    options: CallOptions = {},
  ) {
    this.deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  }

  async get<T>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<T> {
    return this.json<T>(`get ${resource.plural} ${placeOf(ref)}`, { path: pathOf(resource, ref) }, options);
  }

  /** Undefined if the object does not exist. */
  async find<T>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<T | undefined> {
    try {
      return await this.get(resource, ref, options);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** All selected objects, read page by page. */
  async list<T>(resource: Resource<T>, options: ListOptions = {}): Promise<readonly T[]> {
    const found: T[] = [];
    for await (const { items } of this.pages(resource, options)) for (const item of items ?? []) found.push(item);
    return found;
  }

  /** The pages of a list, for lists that are too long for memory. */
  async *pages<T>(resource: Resource<T>, options: ListOptions = {}): AsyncGenerator<List<T>> {
    const { namespace, labelSelector, fieldSelector, resourceVersion, limit = PAGE } = options;
    // The continue token includes the resource version.
    let from: { readonly continue?: string; readonly resourceVersion?: string | undefined } = { resourceVersion };
    for (let most = limit; ; ) {
      const path = `${pathOf(resource, { namespace })}${query({ labelSelector, fieldSelector, limit: String(most), ...from })}`;
      let page: List<T>;
      try {
        page = await this.json<List<T>>(`list ${resource.plural} ${namespace ?? ""}`.trim(), { path }, options);
      } catch (error) {
        const fewer = smallerPage(most, error);
        if (fewer === undefined) throw error;
        most = fewer;
        // The server's cache ignores the limit and answers with all objects.
        if (from.continue === undefined) from = {};
        continue;
      }
      yield page;
      const next = page.metadata?.continue;
      if (!next) return;
      from = { continue: next };
    }
  }

  /** Creates an object in its metadata's namespace. */
  async create<T>(resource: Resource<T>, object: T & Named, options: CallOptions = {}): Promise<T> {
    const ref = refOf(object);
    const path = pathOf(resource, { namespace: ref.namespace });
    const body = typed(resource, object);
    return this.json<T>(`create ${resource.plural} ${placeOf(ref)}`, { method: "POST", path, body }, options);
  }

  /** Replaces an object; a conflict if its metadata's resource version is not the newest. */
  async replace<T>(resource: Resource<T>, object: T & Named, options: CallOptions = {}): Promise<T> {
    const ref = refOf(object);
    const call = { method: "PUT", path: pathOf(resource, ref), body: typed(resource, object) } as const;
    return this.json<T>(`replace ${resource.plural} ${placeOf(ref)}`, call, options);
  }

  /** Server-side apply: creates the object, or changes the given fields. */
  async apply<T>(
    resource: Resource<T>,
    object: T & Named,
    options: ApplyOptions,
  ): Promise<{ readonly object: T; readonly created: boolean }> {
    const ref = refOf(object);
    const { fieldManager, force = false } = options;
    const path = `${pathOf(resource, ref)}${query({ fieldManager, force: String(force) })}`;
    const call = { method: "PATCH", path, contentType: APPLY_TYPE, body: typed(resource, object) } as const;
    const { status, body } = await this.call(`apply ${resource.plural} ${placeOf(ref)}`, call, options);
    return { object: JSON.parse(body) as T, created: status === CREATED };
  }

  async patch<T>(resource: Resource<T>, ref: ObjectRef, { type, body }: Patch, options: CallOptions = {}): Promise<T> {
    const call = { method: "PATCH", path: pathOf(resource, ref), contentType: PATCH_TYPES[type], body } as const;
    return this.json<T>(`patch ${resource.plural} ${placeOf(ref)}`, call, options);
  }

  async delete(resource: Resource<unknown>, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const { deadlineMs: _, ...given } = options;
    const body = { apiVersion: "v1", kind: "DeleteOptions", ...given };
    const call = { method: "DELETE", path: pathOf(resource, ref), body } as const;
    await this.call(`delete ${resource.plural} ${placeOf(ref)}`, call, options);
  }

  private async json<T>(what: string, call: Omit<ApiRequest, "deadlineMs">, options: CallOptions): Promise<T> {
    return JSON.parse((await this.call(what, call, options)).body) as T;
  }

  private async call(
    what: string,
    call: Omit<ApiRequest, "deadlineMs">,
    { deadlineMs = this.deadlineMs }: CallOptions,
  ) {
    const response = await this.send({ ...call, deadlineMs });
    if (response.status < 200 || response.status >= 300) throw new ApiError(what, response);
    return response;
  }
}

/** The object with its kind, which items of lists do not contain. */
function typed(resource: Resource<unknown>, object: object): object {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}
