/** What the kernel says of a process that is measured. */
import { readFileSync } from "node:fs";

/** Rows of `/proc/PID/status`: the peak, what is resident now, and of that the process's own and what it shares with files. */
type MemoryRow = "VmHWM" | "VmRSS" | "RssAnon" | "RssFile";

/** Kilobytes, from the text of `/proc/PID/status`. NaN if it has no such row, as after the process's end. */
export const kilobytesIn = (status: string, row: MemoryRow): number =>
  Number(new RegExp(`^${row}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);

/** Kilobytes of a process. */
export const kilobytes = (pid: number | undefined, row: MemoryRow): number =>
  kilobytesIn(readFileSync(`/proc/${pid}/status`, "utf8"), row);

/** MiB of a process. */
export const mebibytes = (pid: number | undefined, row: MemoryRow): number => kilobytes(pid, row) / 1024;

const MS_A_TICK = 10;

/** Milliseconds of CPU time that a process has used, and its ended children. */
export function processorMs(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(") ") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * MS_A_TICK;
}
