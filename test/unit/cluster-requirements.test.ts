import { judgeGo } from "../cluster/go";

test.each([
  ["new enough", "go1.26.8\nlocal\n"],
  ["just new enough", "go1.26.0\nlocal\n"],
  ["able to fetch a newer one", "go1.24.4\nauto\n"],
])("a Go that is %s suffices", (_, found) => {
  expect(judgeGo("1.26.0", found)).toEqual([]);
});

test.each([
  ["Debian 12's", "go1.19.8\n\n", "1.19.8"],
  ["one that may not fetch", "go1.24.4\nlocal\n", "1.24.4"],
])("a Go that is too old is named, with what to do: %s", (_, found, version) => {
  const problem = `Go 1.26.0 or later, which ${version} is not: .ci/install-go fetches one into .cache`;
  expect(judgeGo("1.26.0", found)).toEqual([problem]);
});

test("without any Go, the package of one is named that can fetch a newer one", () => {
  expect(judgeGo("1.26.0", undefined)).toEqual([expect.stringContaining("apt-get install golang-go")]);
});
