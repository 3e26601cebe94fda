import type { Server } from "node:http";
import { isObject, type Json } from "../../cni/json";
import type { Log } from "../../cni/log";
import { parseStanza } from "../../cni/parse-stanza";
import { PLUGIN_TYPE, type Stanza } from "../../cni/stanza";
import { readApiServer } from "../../kubernetes/in-cluster";
import { watch } from "../../kubernetes/watch";
import { type Answer, serve } from "../admin";
import { renewingTransport } from "../api";
import { Bucket } from "../bucket";
import type { Clock } from "../clock";
import { Auditor } from "./auditor";
import { BREAKER_POLICY, Breakers } from "./breaker";
import { isBroken } from "./decide";
import { MESHED_LABEL } from "./diagnose";
import { askInstaller } from "./installer";
import { createInstruments } from "./instruments";
import { knock } from "./knock";
import { Memory } from "./memory";
import type { Pod } from "./pod";
import { Repairer } from "./repairer";
import { Roster } from "./roster";
import type { Settings } from "./settings";
import { Surgery } from "./surgery";

interface Outside {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** @throws where it is no stanza */
function readStanza(text: string): Stanza {
  const stanza = JSON.parse(text) as Json;
  if (!isObject(stanza)) throw new Error("CNI_NETWORK_CONFIG is not a JSON object");
  return parseStanza(stanza, PLUGIN_TYPE);
}

/** The repair controller of one node, until its signal is given. */
export class RepairController {
  private readonly instruments = createInstruments();
  private readonly roster: Roster;
  private readonly repairer: Repairer;
  private readonly auditor: Auditor | undefined;
  private readonly send: ReturnType<typeof renewingTransport>;

  constructor(private readonly outside: Outside) {
    const { settings, log, clock, signal } = outside;
    const { instruments } = this;
    this.send = renewingTransport(this.server);
    const send = this.send;
    const surgery = new Surgery({ send, clock, log, instruments, reporter: settings.podName });
    const breakers = new Breakers(BREAKER_POLICY);
    const { deleteUnvalidated } = settings;
    const roster = new Roster(clock.now, () => instruments.queueOverflow.inc());
    this.roster = roster;
    const limits = { breakers, bucket: new Bucket(settings.rate), deleteUnvalidated };
    const { installerReady: url } = settings;
    const installerReady = async () => url === undefined || askInstaller(url);
    const shared = { roster, surgery, clock, log, signal };
    const { nodeName: node } = settings;
    const memory = new Memory({ send, clock, log, node, returnMs: BREAKER_POLICY.returnMs });
    const repairer = new Repairer({ ...shared, memory, node, limits, instruments, installerReady });
    this.repairer = repairer;
    const found = () => repairer.wake();
    const auditing = { ...shared, send, knock, found, deletes: deleteUnvalidated };
    this.auditor =
      settings.stanza === undefined ? undefined : new Auditor({ ...auditing, stanza: readStanza(settings.stanza) });
    instruments.read({
      broken: () => roster.count((ward) => isBroken(ward, deleteUnvalidated)),
      notRedirected: () => roster.count(({ redirect }) => redirect === "absent"),
      breakersOpen: () => breakers.openCount(clock.now()),
      installerReady: () => repairer.installerWasReady,
    });
  }

  /** Runs until the signal is given. @throws where the admin port is taken */
  async run(): Promise<void> {
    const { settings, log } = this.outside;
    const admin = await this.listen();
    log.info(`looks after the pods of node ${settings.nodeName}, labelled ${MESHED_LABEL}`);
    try {
      await Promise.all([this.follow(), this.repairer.run(), this.auditor?.run()]);
    } finally {
      admin.close();
      admin.closeAllConnections();
      this.send.close();
    }
  }

  private readonly server = () => readApiServer(this.outside.settings.cluster);

  private listen(): Promise<Server> {
    const { registry } = this.instruments;
    const ok: Answer = { status: 200, body: "ok\n" };
    return serve(this.outside.settings.admin, {
      "/live": () => ok,
      "/ready": () => (this.roster.complete ? ok : { status: 503, body: "the pods have not been listed yet\n" }),
      "/metrics": async () => ({ status: 200, body: await registry.metrics() }),
    });
  }

  private async follow(): Promise<void> {
    const { settings, log, clock, signal } = this.outside;
    const source = {
      path: "/api/v1/pods",
      labelSelector: MESHED_LABEL,
      // Completed pods stay for days. One that failed may have to be replaced.
      fieldSelector: `spec.nodeName=${settings.nodeName},status.phase!=Succeeded`,
    };
    const troubled = (problem: string, pauseMs: number) => {
      this.instruments.watchErrors.inc();
      log.warn(`${problem}; next attempt in ${(pauseMs / 1000).toFixed(1)} s`);
    };
    const { now, random } = clock;
    const sleep = (ms: number) => clock.sleep(ms, signal);
    const tools = { server: this.server, send: this.send, now, sleep, random, troubled, signal };
    for await (const notice of watch<Pod>(source, tools)) {
      this.roster.apply(notice);
      this.repairer.wake();
    }
  }
}
