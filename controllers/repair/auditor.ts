import type { Namespace } from "../../cni/decide";
import type { Log } from "../../cni/log";
import type { Stanza } from "../../cni/stanza";
import type { Transport } from "../../kubernetes/client";
import type { NamespaceObject } from "../../kubernetes/types";
import type { Clock } from "../clock";
import { isBroken } from "./decide";
import type { Knock } from "./knock";
import { judgeAudit, planAudit } from "./plan-audit";
import type { Pod } from "./pod";
import type { Redirect, Roster, Ward } from "./roster";
import type { Surgery } from "./surgery";
import { notRedirected, notReplaced } from "./tidings";

interface Tools {
  readonly roster: Roster;
  readonly stanza: Stanza;
  readonly send: Transport;
  readonly surgery: Surgery;
  readonly knock: (host: string, port: number) => Promise<Knock>;
  readonly clock: Clock;
  readonly log: Log;
  /** The controller deletes what is found and will be brought back, and says so then. */
  readonly deletes: boolean;
  /** Something was found that has to be deleted. */
  readonly found: () => void;
  readonly signal: AbortSignal;
}

const ROUND_MS = 10_000;
/** A pod about which nothing could be learned is asked again after so long. */
const AGAIN_MS = 5 * 60_000;
const DEADLINE_MS = 5_000;

/** Asks pods that nothing validates whether their connections are redirected. */
export class Auditor {
  constructor(private readonly tools: Tools) {}

  async run(): Promise<void> {
    const { clock, roster, signal } = this.tools;
    while (!signal.aborted) {
      for (const ward of [...roster.all()]) await this.look(ward);
      await clock.sleep(ROUND_MS, signal);
    }
  }

  private async look(ward: Ward): Promise<void> {
    const { clock, signal } = this.tools;
    const { pod } = ward;
    if (pod === undefined || ward.auditAt > clock.now() || signal.aborted) return;
    const redirect = await this.audit(ward, pod);
    // A pod that changed meanwhile is looked at again.
    if (ward.pod !== pod) return;
    ward.redirect = redirect;
    ward.auditAt = clock.now() + AGAIN_MS;
    if (redirect !== "unknown") ward.pod = undefined;
    if (redirect === "absent") await this.tell(ward);
  }

  private async tell(ward: Ward): Promise<void> {
    const { deletes, found, log, surgery } = this.tools;
    log.warn(`pod ${ward.namespace}/${ward.name}: connections to it are not redirected, and nothing in it checks that`);
    if (isBroken(ward, deletes)) found();
    else await surgery.publish(ward, deletes ? notReplaced : notRedirected);
  }

  private async audit(ward: Ward, pod: Pod): Promise<Redirect> {
    const { knock, log, stanza } = this.tools;
    try {
      const plan = planAudit(pod, await this.namespace(ward.namespace), stanza);
      if (plan === undefined) return "unknown";
      const ports = await Promise.all(plan.ports.map((port) => knock(plan.host, port)));
      return judgeAudit(await knock(plan.host, plan.proxyPort), ports);
    } catch (error) {
      log.debug(`pod ${ward.namespace}/${ward.name} cannot be audited: ${(error as Error).message}`);
      return "unknown";
    }
  }

  private async namespace(name: string): Promise<Namespace> {
    const { status, body } = await this.tools.send({ path: `/api/v1/namespaces/${name}`, deadlineMs: DEADLINE_MS });
    if (status !== 200) throw new Error(`namespace ${name}: ${status}`);
    return { name, annotations: (JSON.parse(body) as NamespaceObject).metadata?.annotations ?? {} };
  }
}
