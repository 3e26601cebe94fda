import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hierarchies } from "../cluster/cgroups";

/** A control group with a memory limit, of cgroup v1 or v2, for the processes of a test. */
export class MemoryGroup {
  private constructor(
    private readonly directory: string,
    private readonly isV2: boolean,
  ) {}

  /** @param name of the group, below the root */
  static async make(name: string, bytes: number): Promise<MemoryGroup> {
    const found = await hierarchies();
    const [first = ""] = found;
    const isV2 = found.length === 1;
    const hierarchy = isV2 ? first : (found.find((path) => path.endsWith("/memory")) ?? first);
    const group = new MemoryGroup(join(hierarchy, name), isV2);
    await mkdir(group.directory, { recursive: true });
    await group.write(isV2 ? "memory.max" : "memory.limit_in_bytes", `${bytes}`);
    // Nothing is to be swapped out instead; kernels without swap have no such file.
    if (isV2) await group.write("memory.swap.max", "0").catch(() => undefined);
    return group;
  }

  /** The command that runs a program in it. @param command with its arguments */
  enter(command: readonly string[]): string[] {
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', join(this.directory, "cgroup.procs"), ...command];
  }

  /** Most bytes that its processes have had at once, the kernel's memory for them and page cache included. */
  async peak(): Promise<number> {
    return Number(await this.read(this.isV2 ? "memory.peak" : "memory.max_usage_in_bytes"));
  }

  /** How many processes the kernel has killed because the group had no more memory. */
  async kills(): Promise<number> {
    const text = await this.read(this.isV2 ? "memory.events" : "memory.oom_control");
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1]);
  }

  /** Removes it when its processes have ended. */
  remove(): Promise<void> {
    return rmdir(this.directory);
  }

  private write(name: string, value: string): Promise<void> {
    return writeFile(join(this.directory, name), value);
  }

  private async read(name: string): Promise<string> {
    return (await readFile(join(this.directory, name), "utf8")).trim();
  }
}
