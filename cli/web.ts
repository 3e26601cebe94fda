import { reasonOf } from "../cni/errors";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1 << 20;

/** Whether a text is an http or https URL. */
export const isUrl = (text: string): boolean => /^https?:\/\//.test(text);

/** A URL without credentials and query, for messages. */
export const withoutCredentials = (url: string): string => url.replace(/\/\/[^/]*@/, "//").replace(/[?#].*/s, "");

/** The request for a URL, with the user and password in a header. */
function requestFor(text: string): Request {
  const url = new URL(text);
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  url.username = "";
  url.password = "";
  const basic = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  return new Request(url, { headers: user === "" ? {} : { authorization: basic } });
}

/** Reads a text of up to 1 MiB over HTTP within 30 s. @throws an Error that names the URL, without credentials */
export async function fetchText(url: string): Promise<string> {
  try {
    const answer = await fetch(requestFor(url), { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    return new TextDecoder().decode(Buffer.concat(chunks));
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    const reason = reasonOf(cause ?? error);
    throw new Error(`${withoutCredentials(url)}: ${reason.includes(url) ? "is not a URL" : reason}`);
  }
}
