/** The installer reads CNI configuration as the runtimes' own loaders do, whose answers are recorded. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadedByUs, RUNTIMES, type Runtime, recorded, TYPES, withDirectories } from "../support/cni-loaders";

const all = recorded();

test("the record has hundreds of directories, and each runtime loads a part of them", () => {
  expect(all.length).toBeGreaterThan(700);
  for (const runtime of Object.keys(RUNTIMES) as Runtime[]) {
    expect(all.filter((each) => each[runtime] !== null).length).toBeGreaterThan(200);
    expect(all.filter((each) => each[runtime] === null).length).toBeGreaterThan(100);
  }
});

test.each(Object.keys(RUNTIMES) as Runtime[])("%s loads what we say that it does", (runtime) => {
  const files = all.map((each) => each.files);
  const ours = withDirectories(files, (paths, root) => {
    for (const type of TYPES) writeFileSync(join(root, "bin", type), "");
    return paths.map((path) => loadedByUs(path, join(root, "bin"), runtime));
  });
  const said = (index: number, loaded: string | null) => `${all[index]?.is}: ${loaded}`;
  expect(ours.map((loaded, index) => said(index, loaded))).toEqual(
    all.map((each, index) => said(index, each[runtime])),
  );
});
