import { Mounts, mountOf } from "./mounts";

const line = (root: string, point: string, options = "rw") =>
  `20 1 8:1 ${root} ${point} ${options} - ext4 /dev/sda1 rw`;

test("a path's mount is the innermost one, and the last one of several at the same mount point", () => {
  const mountinfo = [
    "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "21 20 8:2 / /host/opt ro,noexec - ext4 /dev/sda2 rw",
    "22 20 8:3 / /host/etc\\040cni rw,nosuid - ext4 /dev/sda3 rw",
    "23 20 8:3 / /host/opt rw,noexec - ext4 /dev/sda3 rw",
  ].join("\n");
  const readOnlyDisk = "24 20 8:4 / /host/var rw - ext4 /dev/sda4 ro,errors=remount-ro";
  expect(mountOf(`${mountinfo}\n${readOnlyDisk}`, "/host/var/lib")?.options).toEqual(["rw", "ro"]);
  const options = (path: string) => mountOf(mountinfo, path)?.options;
  expect(options("/host/opt/cni/bin")).toEqual(["rw", "noexec"]);
  expect(options("/host/etc cni/net.d")).toEqual(["rw", "nosuid"]);
  expect(options("/host/optional")).toEqual(["rw", "relatime"]);
});

test.each([
  ["stays", "/etc/cni/net.d", undefined],
  ["is moved", "/etc/cni/net.d.old", "/host/net.d was moved or removed on the node"],
  ["is removed", "/etc/cni/net.d//deleted", "/host/net.d was moved or removed on the node"],
])("a mounted directory that %s", (_, root, message) => {
  let now = "/etc/cni/net.d";
  const mounts = new Mounts(["/host/net.d"], () => [line("/", "/"), line(now, "/host/net.d")].join("\n"));
  now = root;
  if (message === undefined) expect(() => mounts.check()).not.toThrow();
  else expect(() => mounts.check()).toThrow(message);
});

test.each([
  ["at first", "", line("/etc/cni/net.d", "/host/net.d")],
  ["later", line("/etc/cni/net.d", "/host/net.d"), ""],
])("without information %s, there is no error", (_, first, then) => {
  let mountinfo = first;
  const mounts = new Mounts(["/host/net.d"], () => mountinfo);
  mountinfo = then;
  expect(() => mounts.check()).not.toThrow();
});
