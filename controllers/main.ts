/** The programs by name, which the first argument chooses; each is loaded, and begins, only when it is the one. */
const programs: Readonly<Record<string, () => unknown>> = {
  repair: () => require("./repair/main"),
  multus: () => require("./multus/main"),
  validate: () => require("./validate.main"),
};

const [name = ""] = process.argv.splice(2, 1);
const load = Object.hasOwn(programs, name) ? programs[name] : undefined;
if (load === undefined) {
  process.stdout.write(
    `linkerd-cni: error: no program "${name}"; known are ${Object.keys(programs).join(", ")}\n`,
    () => process.exit(2),
  );
} else {
  load();
}
