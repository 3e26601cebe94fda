import pc from "picocolors";

/** One finished step. */
export interface Step {
  readonly title: string;
  readonly milliseconds: number;
}

/** Reports steps and their durations; a terminal also shows running steps. */
export class Progress {
  constructor(
    private readonly stream: NodeJS.WriteStream,
    readonly steps: Step[] = [],
  ) {}

  async step<T>(title: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    const show = () => {
      const waited = Math.floor((performance.now() - start) / 1000);
      this.stream.write(`\r\u001b[2K${pc.dim("…")} ${title}${waited === 0 ? "" : pc.dim(` ${waited} s`)}`);
    };
    // A build may take a minute; the seconds show progress.
    const ticks = this.stream.isTTY ? setInterval(show, 1000) : undefined;
    if (this.stream.isTTY) show();
    try {
      const result = await work();
      const milliseconds = performance.now() - start;
      this.steps.push({ title, milliseconds });
      this.line(pc.green("✓"), `${title.padEnd(58)} ${duration(milliseconds)}`);
      return result;
    } catch (error) {
      this.line(pc.red("✗"), title);
      throw error;
    } finally {
      clearInterval(ticks);
    }
  }

  note(text: string): void {
    this.line(pc.yellow("!"), text);
  }

  private line(sign: string, text: string): void {
    const clear = this.stream.isTTY ? "\r\u001b[2K" : "";
    this.stream.write(`${clear}${sign} ${text}\n`);
  }
}

/** Milliseconds below ten seconds, seconds from there on, right-aligned. */
function duration(milliseconds: number): string {
  const text = milliseconds < 10_000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s `;
  return text.padStart(9);
}
