/** Node cannot see whether a directory is opened. */
export const isOpened = async (): Promise<boolean> => {
  throw new Error("not by Node");
};
