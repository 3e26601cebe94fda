/** The address of an API server, the authority of its certificate, and a token for it. */
export interface ApiServer {
  /** Host name or address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** PEM certificates that the server's must chain to. */
  readonly ca: string;
  readonly token: string;
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

/** The value of the header Authorization. @throws Error for a token that would end the header, without quoting it */
export function bearer({ token }: ApiServer): string {
  if (!/^[\x21-\x7e]*$/.test(token)) throw new Error("the token holds a character that no token has");
  return `Bearer ${token}`;
}

/** PEM without the blanks at the end of lines and within base64 that Go accepts, and the TLS library does not. */
export const withoutBlanks = (pem: string): string => pem.replace(/(?<!-----(?:BEGIN|END))[ \t]+/g, "");

/** `host:port`, with brackets around an IPv6 address. */
export function authority(server: ApiServer): string {
  return `${server.host.includes(":") ? `[${server.host}]` : server.host}:${server.port}`;
}
