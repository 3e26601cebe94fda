import { LinkerdContainer } from "../cni/contract";

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;

/** A container's probes by a TCP connection alone, and the ports that they may name. */
export interface ProbedContainer
  extends Readonly<
    Partial<Record<(typeof PROBES)[number], { readonly tcpSocket?: { readonly port: number | string } }>>
  > {
  readonly name: string;
  readonly ports?: readonly { readonly name?: string; readonly containerPort?: number }[];
}

/** A probe that the proxy answers: it accepts every connection, even if the container does not listen. */
export interface TcpProbe {
  readonly container: string;
  readonly probe: (typeof PROBES)[number];
  readonly port: number;
}

/** The probes of a meshed pod's own containers that only open a connection. */
export function tcpProbes(containers: readonly ProbedContainer[] = []): readonly TcpProbe[] {
  return containers
    .filter(({ name }) => name !== LinkerdContainer.proxy)
    .flatMap(({ name, ports = [], ...probes }) =>
      PROBES.flatMap((probe) => {
        const port = probes[probe]?.tcpSocket?.port;
        if (port === undefined) return [];
        const named = ports.find((each) => each.name === port)?.containerPort;
        return [{ container: name, probe, port: named ?? Number(port) }];
      }),
    );
}
