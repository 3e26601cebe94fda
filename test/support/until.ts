import { eventually } from "../../system/eventually.testing";

/** Waits for a condition, as {@link eventually} does for a value. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  seconds?: number,
): Promise<void> {
  await eventually(async () => (await condition()) || undefined, what, seconds);
}
