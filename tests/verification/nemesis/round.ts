import { createClient } from 'holdfast';
import { setTimeout as pause } from 'node:timers/promises';
import { lockChannel } from '../../../src/redis/keys.js';
import { startWorker, type Worker } from '../../support/processes/child.js';
import { check, type CheckOptions } from '../../support/history/history.js';
import type { HistoryEvent } from '../../support/history/history-events.js';
import { isOf } from '../../support/history/history-facts.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import type { Violation } from '../../support/history/history-violations.js';
import type { RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import type { WorkerClientOptions } from '../../support/processes/worker-orders.js';
import { drillPermits, HELD_BY_BENCH, PERMITS, type DrillResult } from './drill.js';
import { STRIKES, type Bench } from './faults.js';
import { GO_ON, REST, WHAT_IS_AWAITED } from './flows.js';
import { followers, grantedByKind } from './granted.js';
import {
  busyNames,
  calmNames,
  drawNames,
  hasKeys,
  isElsewhere,
  isExclusive,
  isFair,
  isLock,
  kindOf,
  redisName,
  twinsOf,
  unfollowedOf,
  type Kind,
} from './kinds.js';
import { clientOptionsOf, drawHotOptions, mayFollow, type HotOptions } from './hot-options.js';
import { latchLock } from './latch-flow.js';
import type { FlowOptions, FlowResult } from './load.js';
import { Network } from './network.js';
import { countPermits, setPermits } from './permit-count.js';
import { ACT_MS, aftermathMs, isHarmless, type FaultName, type ScheduledFault } from './schedule.js';
import { ServerWatch } from './server-watch.js';
import { isRefusedAtRest, UNANSWERED, WRONG_TYPE, WRONG_TYPE_AT_REST } from './refused-flow.js';
import { listeners, openStage, type Stage, type TopologyName } from './stage.js';
import { effectsOf } from './takes.js';
import { ELSEWHERE_CLIENT } from './target.js';
import { COMMAND_TIMEOUT_MS, within } from './timing.js';

export interface RoundOptions {
  readonly seed: string;
  readonly ms: number;
  readonly schedule: readonly ScheduledFault[];
  readonly processes: number;
  readonly flows: number;
  readonly names: number;
  readonly kinds: readonly Kind[];
  readonly topology: TopologyName;
  readonly planned: boolean;
  /** All clients have local hand-overs. Otherwise those of half of the processes do. */
  readonly hot: boolean;
}

type Complaint = { readonly kind: string; readonly message: string };

export interface RoundResult {
  readonly sections: number;
  readonly faults: ReadonlyMap<FaultName, number>;
  readonly refused: ReadonlyMap<string, number>;
  readonly notReleased: ReadonlyMap<string, number>;
  readonly granted: ReadonlyMap<string, number>;
  readonly lossesSignalled: number;
  readonly unknownOutcomes: number;
  readonly takes: number;
  readonly lostWrites: number;
  /** Sections that followed another one without a request. */
  readonly followed: number;
  /** Of these, sections that began after the lock had been lost in Redis, as is allowed. */
  readonly followedAfterLoss: number;
  readonly history: readonly HistoryEvent[];
  readonly violations: readonly (Complaint & { events?: Violation['events'] })[];
}

/** Differs between processes, so that the server log shows the process of a call without a lease. */
const watchdogTimeout = (process: number): number => 3_000 + process;
/** One is instrumented, as by an agent. */
const isTraced = (process: number): boolean => process === 3;
/** Background work is first repeated within this time. */
const SILENT_MS = 1_200;
/** A reconnection and 0.2 s, on a busy machine. */
const LISTENING_WITHIN_MS = 5_000;
const RED_SERVERS = 3; // the smallest number of which one may be unavailable
/** Longest duration of a lease, a late delivery or a repetition of a release after the end of the faults. */
const QUIET_LIMIT_MS = 20_000;
/**
 * Expected warnings: a call waits long behind a hold of its process, or for a semaphore that a fault has deleted. The
 * drill counts objects with an experimental function of Node.js.
 */
const EXPECTED_WARNINGS = new Set(['HOLDFAST_LONG_WAIT', 'HOLDFAST_NOT_SET_UP', 'ExperimentalWarning']);
/** A process's further clients, by their places. */
const beside = (at: number): string => `beside ${at + 1}`;
const FLOWS = new URL('./flows.ts', import.meta.url);
const TRACED = new URL('./traced.mjs', import.meta.url);
const DRILL = new URL('./drill.ts', import.meta.url);
const REFUSED_CALLS = new URL('./refused-flow.ts', import.meta.url);

/** The user's own connection at its most dangerous: nothing of it may matter. */
const DANGEROUS: NonNullable<WorkerClientOptions['redisOptions']> = {
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: true,
  maxRetriesPerRequest: null,
  retryStrategy: undefined,
};

/** The default of `handOff.maxTime`. */
const SHARE_MS = 100;
const EXPECTED: CheckOptions = { allFaultsTold: true, inOrder: isFair, mayFollow, isExclusive, shareMs: SHARE_MS };

/** Runs some seconds of work and faults, then a calm phase, and checks the history. */
export async function playRound(options: RoundOptions): Promise<RoundResult> {
  const round = new Round(options);
  try {
    await round.open();
    if (await round.play()) await round.settle();
    else await round.breakOff();
    return round.judge();
  } finally {
    await round.close();
  }
}

class Round implements Bench {
  stage!: Stage;
  readonly networks: Network[] = [];
  readonly locks: readonly string[];
  readonly movable: readonly string[];
  readonly #names: readonly string[];
  /** Which share their channels with some of these. */
  readonly #twins: readonly string[];
  readonly #calm: readonly string[];
  readonly #busy: readonly string[];
  readonly #hot: readonly HotOptions[];
  readonly #workers: Worker[] = [];
  readonly #dead: Worker[] = [];
  readonly #working = new Map<Worker, Promise<FlowResult>>();
  readonly #results: FlowResult[] = [];
  readonly #processOf = new Map<string, Worker>();
  readonly #struck = new Map<FaultName, number>();
  readonly #history: HistoryEvent[] = [];
  readonly #complaints: Complaint[] = [];
  watch!: ServerWatch;
  /** The bench's own clients, which acquire locks after the faults. */
  readonly #ownIds = new Set<string>();
  /** Faults of the server come one after the other. */
  #serverTurn: Promise<unknown> = Promise.resolve();
  #over = false;

  constructor(private readonly options: RoundOptions) {
    this.#names = drawNames(options.names, options.kinds);
    this.#busy = busyNames(options.kinds);
    // The busy names come twice: there a deletion meets sections that follow one another.
    this.locks = [...this.#names.filter(isLock), ...this.#busy, ...this.#busy];
    this.#twins = twinsOf(this.#names, options.topology === 'single');
    this.#calm = calmNames(options.kinds);
    this.#hot = drawHotOptions(options.seed, options.processes, options.hot);
    this.movable = [...this.#names.filter(hasKeys), ...this.#calm, ...this.#busy];
  }

  async open(): Promise<void> {
    const { topology, kinds } = this.options;
    this.stage = await openStage(topology, this.planned, kinds.includes('red') ? RED_SERVERS : 1);
    const { servers } = this.stage;
    this.watch = await ServerWatch.open(
      this.stage,
      [...this.locks, ...this.#twins.filter((name) => isLock(name) && !isElsewhere(name)), ...this.#calm],
      // Late events are the fault of this process then. Some processes may not have started yet: forEach skips the
      // gaps.
      (stood) => this.#workers.forEach(({ name }) => this.#history.push({ type: 'stalled', process: name, ...stood })),
      (why) => this.#complain('no monitor watches a server', why),
    );
    this.#history.push(...(await setPermits(this.stage, [...this.#names, ...this.#twins])));
    await Promise.all(servers.map((server) => this.prepare(server)));
    const { processes } = this.options;
    for (let process = 0; process < processes; process++) this.networks.push(await Network.open(servers));
    await Promise.all(this.networks.map((_, process) => this.#start(process)));
  }

  /** Runs act after act, with an idle phase after each. `false`: a violation was found. */
  async play(): Promise<boolean> {
    const { ms, schedule } = this.options;
    for (let from = 0; from < ms; from += ACT_MS) {
      const until = Math.min(from + ACT_MS, ms);
      await this.#act(
        from,
        until,
        schedule.filter(({ at }) => at >= from && at < until),
      );
      if (until === ms) continue;
      await this.#standStill();
      if (this.#isWrong) return false;
      await this.#resetPermits();
      await this.#goOn();
    }
    return true;
  }

  /** The violation is known, and all flows have stopped. */
  async breakOff(): Promise<void> {
    await this.watch.finish();
  }

  async #act(from: number, until: number, faults: readonly ScheduledFault[]): Promise<void> {
    const start = performance.now() - from;
    const striking: Promise<void>[] = [];
    for (const fault of faults) {
      await pause(Math.max(0, start + fault.at - performance.now()));
      striking.push(this.#strike(fault));
    }
    await pause(Math.max(0, start + until - performance.now()));
    // Calm phase: held data is delivered now, and dead processes stay dead.
    this.#over = true;
    for (const network of this.networks) network.lift();
    await Promise.all(striking);
    await this.#serverTurn;
    this.#over = false;
  }

  /** Stops all flows. All remaining state must have an explanation. */
  async #standStill(): Promise<void> {
    await Promise.all(
      this.#workers.map(async (worker) => {
        const stands = worker.run(FLOWS, REST).then(() => true);
        if (await within(QUIET_LIMIT_MS, stands)) return;
        const awaited = (await worker.run(FLOWS, WHAT_IS_AWAITED)) as string[];
        this.#complain('never settled', `flows of ${worker.name} do not come to rest: ${awaited.join('; ')}`);
      }),
    );
    await this.#lookAround();
  }

  async #goOn(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.run(FLOWS, GO_ON)));
  }

  /** One thing after the other, until something is wrong: then the rest would only take its time. */
  async #lookAround(): Promise<void> {
    const looks: readonly (() => Promise<unknown>)[] = [
      () => this.#passThrough([...this.locks, ...this.#twins, ...this.#calm].filter(isFair)),
      () => this.#beRefused(),
      () => Promise.all(this.#workers.map((worker) => this.#drill(worker))),
      () => this.#cutWaiters(),
      async () => this.#history.push(...(await this.#permitsLeft())),
      () => this.#gone('key', async () => (await this.stage.leftovers()).keys.filter((key) => !this.#stays(key))),
      () => this.#gone('channel', async () => (await this.stage.leftovers()).channels),
    ];
    for (const look of looks) {
      if (this.#isWrong) return;
      await look();
    }
  }

  get #isWrong(): boolean {
    // The dead took permits with them.
    const known = [...this.#history, ...this.#dead.flatMap((worker) => worker.history())];
    return this.#complaints.length > 0 || check(known).length > 0;
  }

  /** A little work of which everything is known: nothing disturbs it. */
  async #drill(worker: Worker): Promise<void> {
    const { sections, heaps, free, errors } = (await worker.run(DRILL, {
      keep: this.#hotOf(worker.name).keep,
    })) as DrillResult;
    const told = { process: worker.name, at: stamp() };
    const size = heaps.at(-1);
    if (size) this.#history.push({ ...told, type: 'heap', size });
    this.#history.push({ ...told, type: 'drilled', sections, sizes: heaps });
    const lock = drillPermits(worker.name);
    this.#history.push({ ...told, type: 'permits-free', lock, free, of: PERMITS });
    await (await this.stage.masterOf(lock)).command('DEL', lock);
    for (const what of errors) this.#history.push({ ...told, type: 'wrong', what });
  }

  /** Cut off while they wait, all processes listen again before the lock is free, and enter when it is. */
  async #cutWaiters(): Promise<void> {
    const client = createClient(this.stage.direct());
    const hold = await client.getLock(HELD_BY_BENCH).acquire({ leaseTime: 4 * QUIET_LIMIT_MS });
    const server = await this.stage.masterOf(HELD_BY_BENCH);
    const allListen = async (): Promise<boolean> =>
      (await listeners(server, lockChannel(HELD_BY_BENCH))) === this.#workers.length;
    const entered = Promise.all(this.#workers.map((worker) => worker.run(DRILL, { lock: HELD_BY_BENCH }))).then(
      () => true,
      () => false,
    );
    try {
      await until(allListen, 'all listen', LISTENING_WITHIN_MS);
      await server.killPubsub();
      await until(allListen, 'all listen again', LISTENING_WITHIN_MS);
    } catch (error) {
      this.#complain('left outside a free lock', `not every process that waits is subscribed: ${String(error)}`);
    }
    await hold.release();
    if (!(await entered)) this.#complain('left outside a free lock', 'a process did not enter after the release');
    await client.close();
  }

  async #resetPermits(): Promise<void> {
    this.#history.push(...(await setPermits(this.stage, [...this.#names, ...this.#twins])));
  }

  async settle(): Promise<void> {
    const peace = stamp();
    await this.#standStill();
    if (this.#isWrong) return this.breakOff();
    await Promise.all(this.#workers.map((worker) => worker.stopContending()));
    await this.#goOn();
    for (const worker of this.#workers) {
      const result = await within(QUIET_LIMIT_MS, this.#working.get(worker)!);
      if (result) this.#results.push(result);
      else this.#complain('never settled', `flows of ${worker.name} have not ended`);
      if (result && isTraced(this.#workers.indexOf(worker)) && result.spans === 0)
        this.#complain('the bench contradicts itself', `${worker.name} has not been traced`);
      for (const lock of result?.heldAtEnd ?? [])
        this.#complain('left behind', `${worker.name} still counts ${lock} as held`);
    }
    const others = this.stage.reachOthers(this.networks[0]!);
    const elsewhere = this.stage.reachElsewhere(this.networks[0]!) ? [ELSEWHERE_CLIENT] : [];
    const clients = ['client', ...others.map((_, at) => beside(at)), ...elsewhere];
    for (const worker of this.#workers) {
      const closed = await within(
        2 * COMMAND_TIMEOUT_MS + 1_000,
        Promise.all(clients.map((client) => worker.closeClient(undefined, client))).then(() => true),
      );
      if (!closed) this.#complain('never settled', `close() of ${worker.name}`);
      // ioredis gives its sockets a moment to close.
      await this.#gone(`timer in ${worker.name} after close()`, async () => {
        const { active } = await worker.resources();
        return active.filter((resource) => /Timeout|Immediate/.test(resource));
      });
    }
    this.#history.push({ type: 'stalled', process: 'nemesis', from: peace, at: peace });
    await this.watch.finish();
    for (const worker of this.#workers) await worker.close();
  }

  judge(): RoundResult {
    const workers = [...this.#dead, ...this.#workers];
    const events = workers.flatMap((worker) => worker.history());
    for (const worker of workers) {
      for (const { type, detail } of worker.events) {
        const code = String(detail?.['code'] ?? detail?.['name']);
        if (type === 'unhandledRejection')
          this.#complain('unhandled rejection', `${worker.name}: ${JSON.stringify(detail)}`);
        if (type === 'warning' && !EXPECTED_WARNINGS.has(code))
          this.#complain('warning', `${worker.name}: ${String(detail?.['stack'])}`);
      }
    }
    const { takes, held, contradictions, lost: lostWrites } = this.watch;
    const clientOf = (owner: string): string => owner.slice(0, owner.indexOf(':'));
    const effects = effectsOf(
      takes.filter(({ owner }) => !this.#ownIds.has(clientOf(owner))),
      events,
      (owner) => this.#processOf.get(clientOf(owner))?.name,
      (name) => watchdogTimeout(Number(/^p(\d+)/.exec(name)?.[1])),
      (name) => this.#hotOf(name).local,
    );
    for (const contradiction of contradictions) this.#complain('the bench contradicts itself', contradiction);
    const lost = lostWrites.map(({ lock, from, at }): HistoryEvent => ({
      type: 'broken',
      process: 'servers',
      from,
      at,
      locks: [lock],
    }));
    if (this.planned)
      for (const each of lostWrites) this.#complain('a write was lost in a planned failover', JSON.stringify(each));
    const history = [...this.#history, ...lost, ...events, ...held, ...effects];
    const sum = (of: (result: FlowResult) => Readonly<Record<string, number>>): Map<string, number> => {
      const sums = new Map<string, number>();
      for (const result of this.#results)
        for (const [code, count] of Object.entries(of(result))) sums.set(code, (sums.get(code) ?? 0) + count);
      return sums;
    };
    return {
      sections: events.filter(({ type }) => type === 'acquire-ok').length,
      faults: this.#struck,
      refused: sum(({ refused }) => refused),
      notReleased: sum(({ notReleased }) => notReleased),
      granted: grantedByKind(events),
      lossesSignalled: events.filter(({ type }) => type === 'loss-signal').length,
      unknownOutcomes: events.filter(({ type }) => type === 'acquire-unknown').length,
      takes: takes.length,
      lostWrites: lostWrites.length,
      ...followers(history),
      history,
      violations: [...this.#complaints, ...check(history, EXPECTED)],
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#dead, ...this.#workers].map((worker) => worker.close(1_000)));
    await Promise.all(this.networks.map((network) => network.close()));
    this.watch?.close();
    await this.stage?.stop();
  }

  #hotOf(name: string): HotOptions {
    return this.#hot[Number(/^p(\d+)/.exec(name)?.[1])] ?? { local: 0, keep: 0, release: 'awaited' };
  }

  worker(process: number): Worker {
    return this.#workers[process]!;
  }

  replace(process: number): Promise<void> {
    this.#dead.push(this.worker(process));
    return this.#start(process);
  }

  async prepare(server: RedisServer): Promise<void> {
    if (!this.stage.refusing) return;
    for (const key of [WRONG_TYPE, WRONG_TYPE_AT_REST]) await server.command('RPUSH', key, 'of the user');
  }

  get planned(): boolean {
    return this.options.planned;
  }

  async healed(): Promise<void> {
    for (const { replica, master, since } of await this.stage.heal()) this.watch.synced(replica, master, since);
  }

  broken(event: Parameters<Bench['broken']>[0]): void {
    this.#history.push({ type: 'broken', process: 'nemesis', ...event });
  }

  mayHaveLost(from: number): void {
    const locks = unfollowedOf([...this.#names, ...this.#twins, ...this.#calm]);
    this.broken({ from, at: stamp(), locks });
  }

  async #start(process: number): Promise<void> {
    const { seed, flows } = this.options;
    const life = this.#dead.filter((worker) => worker.name.startsWith(`p${process}.`)).length;
    const worker = await startWorker({
      name: `p${process}.${life}`,
      history: true,
      execArgv: ['--import', 'tsx', '--expose-gc', ...(isTraced(process) ? ['--import', TRACED.href] : [])],
    });
    const network = this.networks[process]!;
    const lockWatchdogTimeout = watchdogTimeout(process);
    const hot = this.#hot[process]!;
    const terms = { commandTimeout: COMMAND_TIMEOUT_MS, lockWatchdogTimeout, ...clientOptionsOf(hot) };
    const odd = process % 2 === 1;
    // Half of them have grants confirmed by a replica where there is one, the default; the others believe the master.
    const timeout = COMMAND_TIMEOUT_MS / 3;
    const replicas = this.planned ? { acks: 1, timeout } : odd ? { acks: 0 } : { timeout };
    const id = await worker.createClient({ ...this.stage.reach(network, odd, DANGEROUS), ...terms, replicas });
    this.#processOf.set(id, worker);
    for (const [at, reach] of this.stage.reachOthers(network).entries()) {
      this.#processOf.set(await worker.createClient({ ...reach, ...terms }, beside(at)), worker);
    }
    const elsewhere = this.stage.reachElsewhere(network);
    if (elsewhere) this.#processOf.set(await worker.createClient({ ...elsewhere, ...terms }, ELSEWHERE_CLIENT), worker);
    this.#workers[process] = worker;
    const calm = this.#calm.filter((name, at) => isFair(name) || at % 4 === process || (at + 1) % 4 === process);
    // A counter that a failover takes back would issue a token twice.
    const tokens = this.options.topology === 'single' ? 'counter' : 'clock';
    const load: FlowOptions = {
      seed,
      flows,
      names: this.#names,
      twins: this.#twins,
      refusing: this.stage.refusing,
      calm,
      busy: this.#busy,
      tokens,
      commandTimeout: COMMAND_TIMEOUT_MS,
      lockWatchdogTimeout,
      hot,
      forced: this.options.hot ? 8 : 1,
      pauseMs: this.options.hot ? 20 : 100,
    };
    const working = worker.run(FLOWS, load) as Promise<FlowResult>;
    working.catch((error: unknown) => {
      if (worker.running) this.#complain('a flow has failed', `${worker.name}: ${String(error)}`);
    });
    this.#working.set(worker, working);
  }

  async #strike(fault: ScheduledFault): Promise<void> {
    const strike = async (): Promise<void> => {
      if (this.#over) return;
      const from = stamp();
      const times = await STRIKES[fault.kind](this, fault);
      if (times > 0 && !isHarmless(fault.kind)) this.#disturbed(fault, from);
      if (times > 0) this.#struck.set(fault.kind, (this.#struck.get(fault.kind) ?? 0) + times);
    };
    const alone = fault.kind.startsWith('server') || fault.kind === 'kill-process';
    if (!alone) return strike();
    const turn = this.#serverTurn.then(strike);
    this.#serverTurn = turn.catch(() => undefined);
    return turn;
  }

  #disturbed({ kind, process }: ScheduledFault, from: number): void {
    const whom = kind.startsWith('server') ? 'all' : this.worker(process).name;
    const at = stamp() + aftermathMs(kind);
    const renews = kind === 'server-slot-move';
    this.#history.push({ type: 'disturbed', process: 'nemesis', from, at, whom, by: kind, renews });
  }

  /** The waiters of a fair lock remove the places of dead processes from its queue. */
  async #passThrough(locks: readonly string[]): Promise<void> {
    const { databases } = this.stage;
    const clients = Array.from({ length: databases }, (_, database) => createClient(this.stage.direct(database)));
    for (const { id } of clients) this.#ownIds.add(id);
    const passed = locks.map((name) =>
      clients[isElsewhere(name) ? 1 : 0]!.getFairLock(redisName(name)).withLock(
        { waitTime: QUIET_LIMIT_MS },
        () => undefined,
      ),
    );
    for (const [at, { status }] of (await Promise.allSettled(passed)).entries())
      if (status === 'rejected') this.#complain('never free', locks[at]!);
    await Promise.all(clients.map((client) => client.close()));
  }

  #permitsLeft(): Promise<HistoryEvent[]> {
    const broken = this.#history.some(({ type }) => type === 'broken');
    // Dead processes never release their permits, and after a total loss the number is unknown.
    const mayBeGone = (name: string): boolean => broken || (kindOf(name) === 'semaphore' && this.#dead.length > 0);
    return countPermits(this.stage, [...this.#names, ...this.#twins], (name) =>
      mayBeGone(name) ? 3_000 : QUIET_LIMIT_MS,
    );
  }

  /**
   * Tokens stay forever, lanes for one hour, and the roll of a lock for a minute after a parked client died. The latch of a killed process still waits for its last count-down, and so
   * does a latch whose count-down or deletion was lost in a failover.
   */
  #stays(key: string): boolean {
    if (key === WRONG_TYPE || key === WRONG_TYPE_AT_REST) return true;
    if (key.startsWith('redisson_lock_token:') || key.startsWith('holdfast_requests:')) return true;
    if (key.startsWith('holdfast_waiters:')) return true;
    if (kindOf(key) !== 'latch') return false;
    const lost = this.#history.some((event) => event.type === 'broken' && isOf(event.locks, latchLock(key)));
    return lost || this.#dead.some(({ name }) => key.includes(`.${name}.`));
  }

  /** A request that Redis refuses without faults has no effect: no compensation follows. */
  async #beRefused(): Promise<void> {
    if (!this.stage.refusing) return;
    const outcomes = await Promise.all(
      this.#workers.map((worker) => worker.run(REFUSED_CALLS, undefined) as Promise<string[]>),
    );
    const since = performance.now();
    await pause(SILENT_MS);
    for (const [process, { name }] of this.#workers.entries()) {
      const others = outcomes[process]!;
      const wrong = others.filter((outcome) => outcome !== UNANSWERED);
      for (const outcome of wrong) this.#complain('wrong answer', `not refused in ${name}: ${outcome}`);
      if (others.length > 0) continue;
      const followed = this.networks[process]!.proxies.flatMap(({ log }) =>
        log.filter(({ at, args }) => at > since && args.some(isRefusedAtRest)),
      );
      if (followed.length > 0)
        this.#complain(
          'refused and released',
          `${name} sends ${followed.length} requests after calls that Redis refused`,
        );
    }
  }

  async #gone(what: string, found: () => Promise<string[]>): Promise<void> {
    let left: string[] = [];
    try {
      await until(
        async () => {
          await pause(100);
          return (left = await found()).length === 0;
        },
        `no ${what} left`,
        QUIET_LIMIT_MS,
      );
    } catch {
      for (const name of left) this.#complain('left behind', `${what} ${name}`);
    }
  }

  #complain(kind: string, message: string): void {
    this.#complaints.push({ kind, message });
  }
}
