import { HttpClient } from "../../system/http/client";
import { connectTcp } from "../../system/net";
import { NetError } from "../../system/net-error";

/** The result of a TCP connection. `silent`: no answer, or no connection was possible. */
export type TcpAnswer = "open" | "refused" | "silent";

const TCP_DEADLINE_MS = 1_000;
const HTTP_DEADLINE_MS = 2_000;
const URL = /^http:\/\/(?:\[([0-9a-f:.]+)\]|([^:/[\]]+))(?::(\d+))?(\/.*)?$/i;

/** Connects to a port and closes at once without sending. */
export async function probeTcp(host: string, port: number): Promise<TcpAnswer> {
  try {
    (await connectTcp({ host, port }, { deadlineMs: TCP_DEADLINE_MS })).close();
    return "open";
  } catch (error) {
    return error instanceof NetError && error.code === "ECONNREFUSED" ? "refused" : "silent";
  }
}

/** Whether a URL answers with status 200, as the installer's `/ready` does when new pods get the plugin. */
export async function probeHttp(url: string): Promise<boolean> {
  const [, address, name, port = "80", path = "/"] = URL.exec(url) ?? [];
  const host = address ?? name;
  if (host === undefined) return false;
  const target = { host, port: Number(port) };
  const authority = `${address === undefined ? host : `[${host}]`}:${port}`;
  const client = new HttpClient({ authority, connect: (options) => connectTcp(target, options) });
  try {
    return (await client.request({ method: "GET", path }, HTTP_DEADLINE_MS)).status === 200;
  } catch {
    return false;
  } finally {
    client.close();
  }
}
