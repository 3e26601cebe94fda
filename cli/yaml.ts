import type { ParseOptions, SchemaOptions, Tags } from "yaml";

const isTimestamp = (tag: Tags[number]): boolean => (typeof tag === "string" ? tag : tag.tag).endsWith("timestamp");

/** YAML 1.1 as kubectl and helm read it, in which a date is text. */
export const YAML: ParseOptions & SchemaOptions & { readonly version: "1.1" } = {
  version: "1.1",
  customTags: (tags) => tags.filter((tag) => !isTimestamp(tag)),
};
