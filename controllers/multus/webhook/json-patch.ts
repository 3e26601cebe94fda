/** RFC 6902, as far as it is used here. */
export interface Addition {
  readonly op: "add";
  readonly path: string;
  readonly value: unknown;
}
export type JsonPatch = readonly Addition[];

/** One step of a JSON pointer. */
export const pointerStep = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");
