import type { Transport } from "../../kubernetes/transport";

const DEADLINE_MS = 3_000;

/** The node's container runtime as the kubelet reports it, `containerd://1.7.13`; undefined if it is not known. */
export async function askForRuntime(
  connect: () => Transport & { close(): void },
  path: string,
): Promise<string | undefined> {
  try {
    const transport = connect();
    const { status, body } = await transport({ path, deadlineMs: DEADLINE_MS });
    transport.close();
    if (status !== 200) return undefined;
    const node = JSON.parse(body) as { status?: { nodeInfo?: { containerRuntimeVersion?: string } } };
    return node.status?.nodeInfo?.containerRuntimeVersion || undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether a runtime skips a configuration that it cannot load. containerd does not: a broken first file keeps the node
 * NotReady. Undefined if unknown.
 */
export function passesOverBroken(runtime: string | undefined): boolean | undefined {
  if (runtime?.startsWith("containerd://") === true) return false;
  return runtime !== undefined && /^(cri-o|docker):\/\//.test(runtime) ? true : undefined;
}
