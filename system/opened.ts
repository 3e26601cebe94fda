/**
 * Whether a process opens a directory, or a file in it, after the watch has begun. @param meanwhile an action of this
 * process after the watch has begun, which must not open the directory @throws if the kernel refuses the watch (ENOSPC,
 * EMFILE), and under Node, which does not support it: opened.engine.ts does
 */
export const isOpened: (directory: string, meanwhile: () => Promise<unknown>, withinMs: number) => Promise<boolean> =
  async () => {
    throw new Error("not by Node");
  };
