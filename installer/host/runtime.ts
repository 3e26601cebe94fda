import type { Transport } from "../../kubernetes/transport";

const DEADLINE_MS = 3_000;

/**
 * The node's container runtime as the kubelet reports it, `containerd://1.7.13`; undefined if it is not known. The API
 * server may answer from memory: nodes ask every few seconds, and a change that it has not seen yet is seen then.
 */
export async function askForRuntime(connect: () => Transport, node: string): Promise<string | undefined> {
  try {
    const path = `/api/v1/nodes/${node}?resourceVersion=0`;
    const { status, body } = await connect()({ path, deadlineMs: DEADLINE_MS });
    if (status !== 200) return undefined;
    const found = JSON.parse(body) as { status?: { nodeInfo?: { containerRuntimeVersion?: string } } };
    return found.status?.nodeInfo?.containerRuntimeVersion || undefined;
  } catch {
    return undefined;
  }
}
