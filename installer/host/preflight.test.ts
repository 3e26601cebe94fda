import { type HostFacts, preflight } from "./preflight";

const directory = {
  path: "/host/opt/cni/bin",
  state: "writable",
  mountOptions: ["rw", "relatime"],
  holdsPlugin: true,
  freeBytes: 2e8,
} as const;
const good: HostFacts = { directories: [directory], pluginBytes: 1e8 };

const findings: readonly (readonly [string, Partial<HostFacts>, string, string])[] = [
  [
    "a missing directory",
    { directories: [{ ...directory, state: "missing" }] },
    "error",
    "is missing: set destCNIBinDir",
  ],
  ["a file in its place", { directories: [{ ...directory, state: "not a directory" }] }, "error", "is not a directory"],
  [
    "a directory that is not writable",
    { directories: [{ ...directory, holdsPlugin: false, state: "not writable" }] },
    "error",
    "is not writable: let uid 0 write there by the capability DAC_OVERRIDE, or privileged",
  ],
  [
    "a read-only mount",
    { directories: [{ ...directory, state: "not writable", mountOptions: ["ro"] }] },
    "error",
    "mounted read-only: mount it writable",
  ],
  ["a noexec mount", { directories: [{ ...directory, mountOptions: ["rw", "noexec"] }] }, "warn", "mounted noexec"],
  [
    "no space",
    { directories: [{ ...directory, freeBytes: 5 }] },
    "error",
    "5 bytes left, and the plugin needs 100000000",
  ],
  [
    "SELinux",
    { selinux: { enforcing: true, label: "system_u:system_r:container_t:s0:c1,c2" } },
    "warn",
    "seLinuxOptions type spc_t",
  ],
];

test.each(findings)("%s is reported in one line", (_, facts, level, text) => {
  expect(preflight({ ...good, ...facts })).toEqual([{ level, message: expect.stringContaining(text) }]);
});

test.each<Partial<HostFacts>>([
  {},
  { directories: [{ ...directory, holdsPlugin: false, mountOptions: ["rw", "noexec"], freeBytes: 5 }] },
  { selinux: { enforcing: false, label: "system_u:system_r:container_t:s0" } },
  { selinux: { enforcing: true, label: "system_u:system_r:spc_t:s0" } },
])("nothing is reported about a good node: %j", (facts) => expect(preflight({ ...good, ...facts })).toEqual([]));
