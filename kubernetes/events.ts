import { printable } from "../cni/errors";
import type { Clock } from "../process/clock";
import { textOf, utf8 } from "../system/bytes";
import type { KubernetesClient } from "./client";
import { isAlreadyExists } from "./errors";
import { resources } from "./resources";
import type { EventObject, ObjectMeta, ObjectReference } from "./types";

export type { EventObject, ObjectReference };

/** The content of an Event. */
export interface EventSpec {
  readonly type: "Normal" | "Warning";
  /** The reason, in CamelCase. */
  readonly reason: string;
  /** The action of the reporter. */
  readonly action: string;
  /** For people; truncated to the API's limit. */
  readonly note: string;
  /** For programs. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** A related object. */
  readonly related?: ObjectReference | undefined;
}

/** The reporter of an Event. */
interface Reporter {
  readonly controller: string;
  /** The instance, such as its pod's name. */
  readonly instance: string;
}

/** The API's limit, in bytes. */
const LONGEST_NAME = 253;
const LONGEST_NOTE = 1_024;
const LONGEST_INSTANCE = 128;

/** Truncates a text to a number of bytes, at a whole character. */
function cut(text: string, most: number): string {
  const bytes = utf8(text);
  return bytes.length <= most ? text : textOf(bytes.subarray(0, most)).replace(/\ufffd+$/, "");
}

/** Truncates a name so that it can be part of another: each part must end in a letter or a digit. */
const cutName = (name: string, most: number) => name.slice(0, most).replace(/[-.]+$/, "");

/** A time as Kubernetes' MicroTime: six digits after the second. */
export const microTime = (date: Date) => date.toISOString().replace("Z", "000Z");

/** An Event about an object. @param suffix makes its name unique among the object's Events */
export function eventFor(
  regarding: ObjectReference,
  { annotations, note, ...spec }: EventSpec,
  { controller, instance, date }: Reporter & { readonly date: Date },
  suffix: string,
): EventObject & { readonly metadata: ObjectMeta & { readonly name: string; readonly namespace: string } } {
  const { namespace, name } = regarding;
  return {
    metadata: {
      name: `${cutName(name, LONGEST_NAME - suffix.length - 1)}.${suffix}`,
      namespace,
      annotations,
    },
    eventTime: microTime(date),
    reportingController: controller,
    reportingInstance: cut(instance, LONGEST_INSTANCE),
    ...spec,
    note: cut(printable(note), LONGEST_NOTE),
    regarding,
  };
}

interface EventRecorderDeps {
  readonly client: KubernetesClient;
  readonly clock: Pick<Clock, "date">;
}

/** Publishes the Events of one process. */
export class EventRecorder {
  private recorded = 0;

  constructor(
    private readonly reporter: Reporter,
    private readonly deps: EventRecorderDeps,
  ) {}

  /**
   * Publishes an Event about an object. @param suffix identifies the cause, for which the Event is published once.
   * @default each call publishes an Event @throws ApiError, ApiUnreachable
   */
  async record(regarding: ObjectReference, spec: EventSpec, suffix?: string): Promise<void> {
    const date = this.deps.clock.date();
    this.recorded += 1;
    const own = `${date.getTime().toString(16)}${this.recorded.toString(16)}`;
    const event = eventFor(regarding, spec, { ...this.reporter, date }, suffix ?? own);
    try {
      await this.deps.client.create(resources.events, event);
    } catch (error) {
      if (suffix === undefined || !isAlreadyExists(error)) throw error;
    }
  }
}
