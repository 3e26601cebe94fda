import { type FSWatcher, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Watcher } from "./watch";

test("a directory that cannot be watched is named, and the others are watched", () => {
  const directory = mkdtempSync(join(tmpdir(), "watch-"));
  const circle = join(directory, "circle");
  symlinkSync("circle", circle);
  const watched: string[] = [];
  const watch = (path: string) => {
    watched.push(path);
    return { close: () => undefined, on: () => undefined } as unknown as FSWatcher;
  };
  const watcher = new Watcher(
    () => [circle, directory],
    () => undefined,
    watch,
  );
  try {
    const refused = watcher.arm();
    expect([...refused.keys()]).toEqual([circle]);
    expect(refused.get(circle)).toContain("ELOOP");
    expect(watched).toEqual([directory]);
  } finally {
    watcher.close();
    rmSync(directory, { recursive: true });
  }
});
