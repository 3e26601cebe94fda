/** The address, trust and credentials of an API server. */
export interface ApiServer {
  /** Host name or address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** PEM certificates that the server's must chain to. @default the system's */
  readonly ca?: string;
  /** Name in the server's certificate if it differs from `host`. */
  readonly serverName?: string;
  /** Do not verify the server's certificate. @default false */
  readonly insecure?: boolean;
  /** Bearer token. */
  readonly token?: string;
  /** Client certificate and key, PEM. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

export interface ApiResponse {
  readonly status: number;
  readonly body: string;
  /** The header Retry-After: seconds. */
  readonly retryAfter?: string | undefined;
}

/** Without a response: refused, timed out, or not trusted. */
export class ApiUnreachable extends Error {
  override readonly name: string = "ApiUnreachable";
  constructor(
    readonly server: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`API server ${server}: ${reason}`, options);
  }
}

/**
 * The value of the header Authorization; undefined without a token. @throws Error for a token that would end the
 * header, without quoting it
 */
export function bearer({ token }: ApiServer): string | undefined {
  if (token === undefined) return undefined;
  if (!/^[\x21-\x7e]*$/.test(token)) throw new Error("the token holds a character that no token has");
  return `Bearer ${token}`;
}

/** PEM without the blanks at the end of lines and within base64 that Go accepts, and the TLS library does not. */
export const withoutBlanks = (pem: string): string => pem.replace(/(?<!-----(?:BEGIN|END))[ \t]+/g, "");

/** `host:port`, with brackets around an IPv6 address. */
export function authority(server: ApiServer): string {
  return `${server.host.includes(":") ? `[${server.host}]` : server.host}:${server.port}`;
}
