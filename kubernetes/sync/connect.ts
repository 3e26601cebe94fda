/** Verified connections to an API server. */
import { Errno } from "../../host/errno";
import { knownAddresses, resolvedAddresses, systemAuthorities } from "../../host/names";
import type { Host, TlsFailure } from "../../host/port";
import { reasonOf } from "../../host/tls-failure";
import type { ApiServer } from "../api-server";

/** The connection failed; `dropped` if the server closed it after it was made. */
export class ConnectionFailed extends Error {
  constructor(
    message: string,
    readonly dropped = false,
  ) {
    super(message);
  }
}

function addressesOf(host: Host, name: string, milliseconds: number): readonly string[] {
  const known = knownAddresses(host, name);
  return known.length > 0 ? known : resolvedAddresses(name, host.resolve(name, milliseconds), milliseconds);
}

const BROKEN: readonly number[] = [-Errno.ECONNRESET, -Errno.EPIPE];

function isDropped({ step, error }: TlsFailure): boolean {
  if (error === -Errno.ETIMEDOUT) return false;
  return (step === "connect" && BROKEN.includes(error)) || (step === "handshake" && error < 0);
}

/**
 * Connects to the first of the server's addresses that accepts, and verifies it by the kubeconfig. @param milliseconds
 * for everything
 * @throws Error; ConnectionFailed once the server's addresses are known
 */
export function connect(host: Host, server: ApiServer, milliseconds: number): void {
  const begin = host.elapsed();
  const left = () => Math.max(1, Math.round(milliseconds - (host.elapsed() - begin)));
  const trust = {
    port: server.port,
    name: server.serverName ?? server.host,
    ca: server.ca ?? (server.insecure === true ? "" : systemAuthorities(host)),
    certificate: server.certificate?.cert ?? "",
    key: server.certificate?.key ?? "",
    insecure: server.insecure === true,
    judge: (chain: readonly Uint8Array[]) => host.load("certificates").problemOf(chain),
  };
  const addresses = addressesOf(host, server.host, left()).join("\n");
  const problem = host.tlsConnect({ ...trust, addresses }, left());
  if (problem === undefined) return;
  host.tlsClose();
  throw new ConnectionFailed(reasonOf(problem, milliseconds), isDropped(problem));
}
