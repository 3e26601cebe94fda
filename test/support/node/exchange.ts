/** Node has no such call. */
export function exchangeSync(_one: string, _other: string): void {
  throw Object.assign(new Error("ENOSYS: Node cannot exchange names"), { code: "ENOSYS" });
}
