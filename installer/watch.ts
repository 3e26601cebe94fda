import { watch } from "node:fs";

/** Ends a watch. */
export type Stop = () => void;

/**
 * Calls back soon after something changed in one of the directories, once for a burst of changes. Where the kernel
 * refuses (inotify instances used up), says so by `refused`; the caller then has to look by itself.
 */
export function watchDirectories(
  directories: readonly string[],
  changed: () => void,
  refused: (directory: string, reason: string) => void,
): Stop {
  let timer: NodeJS.Timeout | undefined;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      changed();
    }, 50);
  };
  const watchers = directories.flatMap((directory) => {
    const fail = (error: unknown) => refused(directory, error instanceof Error ? error.message : String(error));
    try {
      return [watch(directory, soon).on("error", fail)];
    } catch (error) {
      fail(error);
      return [];
    }
  });
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
