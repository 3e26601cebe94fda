import type { Container } from "kubernetes-types/core/v1";
import { LinkerdContainer } from "../cni/contract";
import type { Sent } from "./check/objects";

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;

/** A probe that the proxy answers: it accepts every connection, even if the container does not listen. */
interface TcpProbe {
  readonly container: string;
  readonly probe: (typeof PROBES)[number];
  readonly port: number;
}

/** The probes of a meshed pod's own containers that only open a connection. */
export function tcpProbes(containers: readonly Sent<Container>[] = []): readonly TcpProbe[] {
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
