import type { InCluster } from "../kubernetes/in-cluster";
import type { ListenAddress } from "./admin";

export type Environment = Readonly<Record<string, string | undefined>>;

const ADDRESS = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]*)):(?<port>\d{1,5})$/;
const MAX_PORT = 65535;

/** Reads what a controller is told, and collects what is wrong, so that it is said all at once. */
export class Reader {
  readonly problems: string[] = [];

  constructor(private readonly environment: Environment) {}

  required(name: string, remedy: string): string {
    const value = this.environment[name] ?? "";
    if (value === "") this.problems.push(`${name} is not set: ${remedy}`);
    return value;
  }

  oneOf<T extends string>(option: string, value: string, known: readonly T[]): T {
    const found = known.find((each) => each === value);
    if (found === undefined) this.problems.push(`--${option} "${value}" is not one of ${known.join(", ")}`);
    return found ?? (known[0] as T);
  }

  positive(option: string, value: string): number {
    const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : 0;
    if (number <= 0) this.problems.push(`--${option} "${value}" is not a number above 0`);
    return number;
  }

  /** A whole number from 0. */
  integer(option: string, value: string): number {
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (!Number.isSafeInteger(number)) this.problems.push(`--${option} "${value}" is not a whole number from 0`);
    return number;
  }

  matching(option: string, value: string, { pattern, what }: { pattern: RegExp; what: string }): string {
    if (!pattern.test(value)) this.problems.push(`--${option} "${value}" is not ${what}`);
    return value;
  }

  port(name: string, value: string): number {
    const port = /^\d{1,5}$/.test(value) ? Number(value) : 0;
    if (port < 1 || port > MAX_PORT) this.problems.push(`${name} "${value}" is not a port`);
    return port;
  }

  address(option: string, value: string): ListenAddress {
    const { v6, name, port = "" } = ADDRESS.exec(value)?.groups ?? {};
    const host = v6 ?? (name === "" ? undefined : name);
    const listen = { port: this.port(`--${option}, HOST:PORT or :PORT,`, port === "" ? value : port) };
    return host === undefined ? listen : { ...listen, host };
  }

  /** Where a pod finds its API server. */
  cluster(): InCluster {
    const { environment } = this;
    const host = this.required("KUBERNETES_SERVICE_HOST", "outside a pod, set it to the API server's address");
    const directory = environment["SERVICE_ACCOUNT_DIR"] || "/var/run/secrets/kubernetes.io/serviceaccount";
    return {
      host: host.replace(/^\[|\]$/g, ""),
      port: this.port("KUBERNETES_SERVICE_PORT", environment["KUBERNETES_SERVICE_PORT"] || "443"),
      serviceAccountDir: directory,
    };
  }

  /** @throws an Error that lists everything that is wrong */
  finish(): void {
    if (this.problems.length > 0) throw new Error(this.problems.join("; "));
  }
}
