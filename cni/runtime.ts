/**
 * What container runtimes do, by a Node's `status.nodeInfo.containerRuntimeVersion`: `containerd://2.2.9`. Undefined if
 * the runtime is unknown.
 */
type Runtime = string | undefined;

type Since = Readonly<Record<string, readonly [major: number, minor: number]>>;

/** The first version of each runtime with libcni 1.3. */
const DROPINS: Since = { containerd: [2, 1], "cri-o": [1, 34] };
const ANNOTATIONS: Since = { containerd: [1, 5], "cri-o": [1, 29] };

function isSince(runtime: Runtime, versions: Since): boolean | undefined {
  if (runtime === undefined) return undefined;
  const [, name = "", ...numbers] = /^([a-z-]+):\/\/v?(\d+)\.(\d+)/.exec(runtime) ?? [];
  const [major = 0, minor = 0] = numbers.map(Number);
  const since = versions[name];
  return since !== undefined && (major > since[0] || (major === since[0] && minor >= since[1]));
}

/** Whether a runtime reads drop-ins. */
export const readsDropins = (runtime: Runtime): boolean | undefined => isSince(runtime, DROPINS);

/** Whether a runtime passes the pod's annotations to the plugin. */
export const passesAnnotations = (runtime: Runtime): boolean | undefined => isSince(runtime, ANNOTATIONS);

/** CRI-O calls the plugin for a pod's DEL with the configuration of its ADD, even after an uninstall. */
export const isCrio = (runtime: Runtime): boolean => runtime?.startsWith("cri-o://") === true;

/**
 * Whether a runtime skips a configuration that it cannot load. containerd does not: a broken first file keeps the node
 * NotReady.
 */
export function passesOverBroken(runtime: Runtime): boolean | undefined {
  if (runtime?.startsWith("containerd://") === true) return false;
  return isCrio(runtime) || runtime?.startsWith("docker://") === true || undefined;
}
