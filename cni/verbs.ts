import type { CniVersion } from "./versions";

export const VERBS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;
/** A value of `CNI_COMMAND`. */
export type Verb = (typeof VERBS)[number];

/** Environment variables that describe a call, in the order in which problems are reported. */
export const VARIABLES = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"] as const;
export type Variable = (typeof VARIABLES)[number];

/** The variables that each verb needs, besides `CNI_COMMAND`. */
export const REQUIRED: Readonly<Record<Verb, readonly Variable[]>> = {
  ADD: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  DEL: ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
  CHECK: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  GC: ["CNI_PATH"],
  STATUS: ["CNI_PATH"],
  VERSION: [],
};

/** The first version of the specification that has a verb, if it is not the first of all. */
export const SINCE: Readonly<Partial<Record<Verb, CniVersion>>> = {
  CHECK: "0.4.0",
  GC: "1.1.0",
  STATUS: "1.1.0",
};

export function isVerb(text: string): text is Verb {
  return (VERBS as readonly string[]).includes(text);
}
