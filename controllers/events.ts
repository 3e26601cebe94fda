import { StringDecoder } from "node:string_decoder";
import type { ObjectMeta } from "../kubernetes/types";

/** Something told about an object. */
export interface Tiding {
  readonly reason: string;
  readonly action: string;
  readonly type: "Normal" | "Warning";
  readonly note: string;
  /** For programs, beside the text for humans. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The object that an Event is about. */
export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
}

/** Who says it, and when. */
export interface Reporter {
  readonly controller: string;
  /** This pod's name. */
  readonly instance: string;
  readonly date: Date;
}

export interface EventObject {
  readonly metadata: ObjectMeta & { readonly name: string; readonly namespace: string };
  readonly [member: string]: unknown;
}

/** Longest name of an object, and longest note, that the API takes, in bytes. */
const LONGEST_NAME = 253;
const LONGEST_NOTE = 1_024;

/** The beginning of a text, as far as so many bytes hold it, in whole characters. */
const inBytes = (text: string, most: number) => new StringDecoder().write(Buffer.from(text).subarray(0, most));

/** The beginning of a name that a part of another may be: one ends in a letter or a digit. */
const partOf = (name: string, most: number) => name.slice(0, most).replace(/[-.]+$/, "");

/** Where Events of a namespace are created. */
export const eventsPath = (namespace: string) => `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;

/** An Event about an object; `suffix` tells its name from those of other Events about it. */
export function eventAbout(regarding: Regarding, told: Tiding, reporter: Reporter, suffix: string): EventObject {
  const { annotations, ...tiding } = told;
  const { namespace, name } = regarding;
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: {
      name: `${partOf(name, LONGEST_NAME - suffix.length - 1)}.${suffix}`,
      namespace,
      ...(annotations === undefined ? {} : { annotations }),
    },
    eventTime: microTime(reporter.date),
    reportingController: reporter.controller,
    reportingInstance: reporter.instance,
    ...tiding,
    note: inBytes(tiding.note, LONGEST_NOTE),
    regarding,
  };
}

/** A time as Kubernetes' MicroTime: six digits after the second. */
export const microTime = (date: Date) => date.toISOString().replace("Z", "000Z");
