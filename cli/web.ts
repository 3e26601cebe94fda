import { reasonOf } from "../cni/errors";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1 << 20;

/** Reads a text of up to 1 MiB over HTTP within 30 s. @throws an Error that names the URL */
export async function fetchText(url: string): Promise<string> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
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
    throw new Error(`${withoutCredentials(url)}: ${reasonOf(cause ?? error)}`);
  }
}

/** A URL without user, password and query. */
function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//").replace(/\?.*/s, "");
}
