/** `system/opened` on the simulated machine. */
import type * as opened from "../../../system/opened";
import { kernel } from "./kernel";

const LOOK_MS = 50;

export const isOpened: typeof opened.isOpened = async (directory, meanwhile, withinMs) => {
  let isSeen = false;
  const end = kernel.onOpened(directory, () => {
    isSeen = true;
  });
  await meanwhile();
  for (let waited = 0; waited < withinMs && !isSeen; waited += LOOK_MS)
    await new Promise<void>((resolve) => setTimeout(resolve, LOOK_MS));
  end();
  return isSeen;
};
