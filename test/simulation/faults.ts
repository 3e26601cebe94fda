/**
 * Planted faults: small changes of the product, each of which breaks a promise. A simulation that does not notice them
 * would not notice a mistake either.
 */
import type { Patch } from "./load";

interface Fault extends Patch {
  readonly kind: "files" | "order" | "API server" | "stop" | "runtime";
}

const DISK = "installer/apply/disk.ts";
const PLAN = "installer/plan/plan.ts";
const SERVICE = "installer/service.ts";
const RECONCILER = "installer/reconcile/reconciler.ts";
const STOP = "installer/reconcile/stop-decision.ts";
const REMOVAL = "installer/plan/removal.ts";

export const FAULTS: Readonly<Record<string, Fault>> = {
  "a file is replaced by two operations": {
    kind: "files",
    file: DISK,
    from: "      confirm();\n      put();",
    to: "      confirm();\n      disk.remove(change.path);\n      disk.rename(temporary, change.path);",
  },
  "a new file is not synced": { kind: "files", file: "system/fs.ts", from: "    fsyncSync(descriptor);\n", to: "" },
  "directories are not synced": {
    kind: "files",
    file: DISK,
    from: "settle: settleSync,",
    to: "settle: () => undefined,",
  },
  "files of a crash stay": {
    kind: "files",
    file: "installer/state/observe.ts",
    from: "      ...temporaryIn(paths.netDir, names),\n      ...temporaryIn(paths.binDir, executables),\n",
    to: "",
  },
  "an owner's last write is overwritten": {
    kind: "files",
    file: DISK,
    from: "if (seen.bytes === undefined || holds({ path: from, bytes: seen.bytes })) {",
    to: "if (seen !== undefined) {",
  },
  "the plugin is replaced by two operations": {
    kind: "files",
    file: DISK,
    from: "    disk.rename(own, path);",
    to: "    disk.remove(path);\n    disk.rename(own, path);",
  },
  "the chain comes before the plugin": {
    kind: "order",
    file: PLAN,
    from: '["journal", "plugin", "chain", "rest"]',
    to: '["journal", "chain", "plugin", "rest"]',
  },
  "the plugin is removed before the chain": {
    kind: "order",
    file: PLAN,
    from: "    ...pristine(state).flatMap((found) => restore(context, found)),\n    ...staleLists(context, undefined),",
    to: "    remove(paths.plugin),\n    ...pristine(state).flatMap((found) => restore(context, found)),\n    ...staleLists(context, undefined),",
  },
  "the list is written before its original is kept": {
    kind: "order",
    file: PLAN,
    from: "[...keep(context, file, active.bytes), put(context, file.name, bytes, file)]",
    to: "[put(context, file.name, bytes, file), ...keep(context, file, active.bytes)]",
  },
  "a burst of changes is forgotten": {
    kind: "order",
    file: "installer/reconcile/watch.ts",
    from: "      this.changed();",
    to: "",
  },
  "the plugin is not run before it is put in place": {
    kind: "order",
    file: "installer/apply/changer.ts",
    from: "const why = install && (await this.stage());",
    to: "if (install) await this.stage();\n    const why = undefined;",
  },
  "a node of a dead installer is never taken": {
    kind: "order",
    file: "installer/reconcile/ownership.ts",
    from: "now - this.wrongSince >= OWNER_SILENT_MS",
    to: "false",
  },
  "a run is not repeated if the node has changed meanwhile": {
    kind: "order",
    file: RECONCILER,
    from: "const MOST_ROUNDS = 5;\nconst BUSY_MS = 100;",
    to: "const MOST_ROUNDS = 1;\nconst BUSY_MS = 60_000;",
  },
  "a change that is undone is made again at once": {
    kind: "order",
    file: RECONCILER,
    from: "tries.dueAt = lastAt + pauseMs;",
    to: "tries.dueAt = lastAt;",
  },
  "the first 401 counts as an uninstall": {
    kind: "API server",
    file: STOP,
    from: '({ is: "confirmable", remove, why })',
    to: '({ is: "certain", remove, why })',
  },
  "a 403 counts as an uninstall": {
    kind: "API server",
    file: STOP,
    from: '({ is: "doubtful", remove: false, why })',
    to: '({ is: "certain", remove: true, why })',
  },
  "no answer counts as an uninstall": {
    kind: "API server",
    file: STOP,
    from: "return confirmable(false, `the API server does not answer",
    to: "return confirmable(true, `the API server does not answer",
  },
  "the first run waits for the API server": {
    kind: "API server",
    file: SERVICE,
    from: "await Promise.race([asked, this.deps.sleep(ASK_FIRST_MS)]);",
    to: "await asked.then(() => (this.runtime === undefined ? new Promise(() => undefined) : undefined));",
  },
  "a DaemonSet that exists counts as deleted": {
    kind: "stop",
    file: STOP,
    from: 'return certain(false, "our DaemonSet is there',
    to: 'return certain(true, "our DaemonSet is there',
  },
  "a stopping installer waits too long for an answer": {
    kind: "stop",
    file: STOP,
    from: "const DEADLINE_MS = 4_000;",
    to: "const DEADLINE_MS = 40_000;",
  },
  "an installer goes on after SIGTERM": {
    kind: "stop",
    file: SERVICE,
    from: "async stop(): Promise<void> {\n    this.end();",
    to: "async stop(): Promise<void> {",
  },
  "an uninstall leaves lists that were made": {
    kind: "stop",
    file: PLAN,
    from: "    ...staleLists(context, undefined),\n",
    to: "",
  },
  "an uninstall leaves the journal": { kind: "stop", file: PLAN, from: "[remove(paths.journal)]", to: "[]" },
  "an uninstall ends before the chain is restored": {
    kind: "stop",
    file: REMOVAL,
    from: "if (!isLast && restoration.length + unsettled.length > 0) return { changes: restoration, pauseMs: PAUSE_MS };",
    to: "if (!isLast && unsettled.length > 0) return { changes: [], pauseMs: PAUSE_MS };",
  },
  "another runtime is never noticed": {
    kind: "runtime",
    file: SERVICE,
    from: "if (found === undefined || found === this.runtime) return false;",
    to: "if (found === undefined || this.runtime !== undefined) return false;",
  },
  "a directory that the node has replaced is never noticed": {
    kind: "runtime",
    file: "installer/reconcile/scheduler.ts",
    from: "      mounts.check();\n",
    to: "",
  },
  "a plugin that has run counts as running for good": {
    kind: "order",
    file: "installer/state/plugin-file.ts",
    from: "known.state === found?.state && isCurrent",
    to: "known.failure === undefined",
  },
  "a single plugin's file gets a drop-in": {
    kind: "runtime",
    file: "cni/conflist/dropin.ts",
    from: '  if (config.kind === "single") return "holds a single plugin, not a list";\n',
    to: "",
  },
  "a drop-in has a name that runtimes do not read": {
    kind: "runtime",
    file: "cni/conflist/dropin.ts",
    from: '"99-linkerd-cni.conf"',
    to: '"99-linkerd-cni.disabled"',
  },
  "an original has a name that runtimes read": {
    kind: "runtime",
    file: "installer/state/journal.ts",
    from: '".linkerd-cni-original"',
    to: '".bak.conflist"',
  },
  "the stanza comes first in a list": {
    kind: "runtime",
    file: "cni/conflist/edit.ts",
    from: "const end = items.at(-1)?.end ?? array.start + 1;",
    to: "const end = items.at(0)?.end ?? array.start + 1;",
  },
  "the runtime does not read again after a drop-in": {
    kind: "runtime",
    file: DISK,
    from: "      reread(change.path, disk);\n",
    to: "",
  },
};
