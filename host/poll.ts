/** Flags of poll(2). */
export const Poll = { input: 1, output: 4 } as const;
