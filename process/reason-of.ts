/** What an error says, for a message of one's own; anything can be thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
