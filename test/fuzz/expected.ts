/** The answers of the same modules under Node. */

import { FakeHost } from "../../host/fake.testing";
import { dispatch } from "../../plugin/dispatch";
import type { Answer, Call } from "./fork-server";

/** Stands for an engine's message about invalid JSON: each engine has its own. */
const WORDS = "(WORDS OF JSON.parse)";

const parse = JSON.parse;
JSON.parse = (text: string, reviver?: (this: unknown, key: string, value: unknown) => unknown) => {
  try {
    return parse(text, reviver);
  } catch {
    throw new SyntaxError(WORDS);
  }
};

/** The machine of a call, the same for both sides. */
export interface Machine {
  readonly namespaces: readonly string[];
  /** All bytes that the installer sends, whatever it is asked for. */
  readonly response: string;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function expected({ env, stdin }: Call, { namespaces, response }: Machine): Answer & { requests: number } {
  const texts = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, decoder.decode(value)]));
  const host = new FakeHost({ env: texts, stdin, namespaces, api: () => response });
  const { stdout, stderr, status } = dispatch(host);
  const requests = host.requests.length;
  return { status, stdout: stdout === "" ? "" : `${stdout}\n`, stderr: host.stderr + stderr, requests };
}

/** Whether a text is as expected, except for messages of engines. */
export function agrees(wanted: string, found: string): boolean {
  if (!wanted.includes(WORDS)) return wanted === found;
  const parts = wanted.split(WORDS);
  let at = 0;
  for (const [index, part] of parts.entries()) {
    at = index === parts.length - 1 ? Math.max(at, found.length - part.length) : found.indexOf(part, at);
    if (at < 0 || !found.startsWith(part, at) || (index === 0 && at !== 0)) return false;
    at += part.length;
  }
  return at === found.length;
}
