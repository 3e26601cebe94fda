import { tooOldForNative, tooOldForPlugin } from "./kernel";

test.each([
  ["3.10.0-1160.el7.x86_64", true, true],
  ["4.9.337", true, true],
  ["4.11.0", true, false],
  ["4.14.355-277.643.amzn2.x86_64", true, false],
  ["4.17.19", true, false],
  ["4.18.0-553.el8_10.x86_64", false, false],
  ["5.4.0", false, false],
  ["6.18.44", false, false],
  ["10.0", false, false],
  ["", false, false],
  ["unknown", false, false],
])("kernel %s", (release, native, plugin) => {
  expect([tooOldForNative(release) !== undefined, tooOldForPlugin(release) !== undefined]).toEqual([native, plugin]);
});
