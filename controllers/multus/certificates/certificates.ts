import type { Registry } from "prom-client";
import { type InformerTools, inform } from "../informer";
import type { Settings } from "../settings";
import type { TlsPair } from "../webhook/tls";
import { CONFIGURATIONS } from "./ca-bundle";
import { CertificateKeeper } from "./keeper";
import { MountedCertificate } from "./mounted";
import { Shown } from "./shown";

interface Outside extends InformerTools {
  readonly settings: Pick<Settings, "webhook" | "podNamespace">;
  readonly registry: Registry;
}

/** Follows the certificate that the settings choose, until the signal is given; `use` is told of each. */
export async function followCertificates(outside: Outside, use: (pair: TlsPair) => void): Promise<void> {
  const { settings, log, registry } = outside;
  const { webhook, podNamespace } = settings;
  const tools = { log, registry, use };
  if (webhook.certificates === "mounted") {
    return new MountedCertificate({ ...outside, directory: webhook.certificateDir, shown: new Shown(tools) }).run();
  }
  const options = {
    namespace: podNamespace,
    secret: webhook.certificateSecret,
    service: webhook.service,
    configuration: webhook.configuration,
    validMs: webhook.certificateValidityMs,
  };
  const keeper = new CertificateKeeper(options, { ...outside, shown: new Shown(tools) });
  const follow = (resource: string, path: string, name: string) => {
    const source = { path, fieldSelector: `metadata.name=${name}` };
    return inform({ resource, source, take: () => keeper.wake() }, outside);
  };
  await Promise.all([
    keeper.run(),
    follow("secrets", `/api/v1/namespaces/${podNamespace}/secrets`, options.secret),
    follow("mutatingwebhookconfigurations", CONFIGURATIONS, options.configuration),
  ]);
}
