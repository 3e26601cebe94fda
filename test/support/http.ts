/** What a program of the image answers at its port for probes and metrics, over a connection of its own. */
export async function get(port: number, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } });
  return { status: answer.status, text: await answer.text() };
}
