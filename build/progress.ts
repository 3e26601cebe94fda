import pc from "picocolors";

/** Reports steps and their durations. */
export class Progress {
  constructor(private readonly stream: NodeJS.WriteStream) {}

  async step<T>(title: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      const result = await work();
      this.line(pc.green("✓"), `${title.padEnd(58)} ${duration(performance.now() - start)}`);
      return result;
    } catch (error) {
      this.line(pc.red("✗"), title);
      throw error;
    }
  }

  note(text: string): void {
    this.line(pc.yellow("!"), text);
  }

  private line(sign: string, text: string): void {
    this.stream.write(`${sign} ${text}\n`);
  }
}

/** Milliseconds below ten seconds, seconds from there on, right-aligned. */
function duration(milliseconds: number): string {
  const text = milliseconds < 10_000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s `;
  return text.padStart(9);
}
