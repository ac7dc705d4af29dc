import type { EventOf, HistoryEvent } from '../../support/history/history-events.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import type { MonitorLog } from '../../support/servers/monitor-log.js';
import type { RedisServer } from '../../support/servers/servers.js';
import { elsewhere, isExclusive, isInSlotOf } from './kinds.js';
import { seenAt, type SeenLine } from './seen-line.js';
import { ServerTruth, type LostWrites } from './server-truth.js';
import type { Stage } from './stage.js';
import type { Take } from './takes.js';
import { wallAhead } from './timing.js';

/** The lines of several servers do not come in their order. */
const LINE_LAG_MS = 1_000;
const LOOK_MS = 50;
/** A delay of this length has delayed every reply that passed through this process. */
const STOOD_MS = 150;
/** The server's time, and of each lock its name, its owner or nothing, and its ms. */
const READ_STATE = `
local found = redis.call('TIME')
for _, lock in ipairs(KEYS) do
  found[#found + 1] = lock
  found[#found + 1] = redis.call('HKEYS', lock)[1] or ''
  found[#found + 1] = tostring(redis.call('PTTL', lock))
end
return found`;

/** Monitors the servers of a round through deaths and failovers, and merges the commands into one truth. */
export class ServerWatch {
  /** One for each database. */
  readonly #truths: readonly ServerTruth[];
  readonly #monitors = new Map<RedisServer, MonitorLog>();
  /** Lines that were read and not yet passed to the truth: earlier lines of another server may still arrive. */
  readonly #lines: SeenLine[] = [];
  readonly #stopped = new Set<RedisServer>();
  readonly #dying = new Set<RedisServer>();
  readonly #reading = setInterval(() => this.#read(), LOOK_MS);
  #lastTick = stamp();

  private constructor(
    private readonly stage: Stage,
    private readonly locks: readonly string[],
    private readonly wallAhead: number,
    /** Receives the times at which this process did not run. */
    private readonly onStood: (stall: Pick<Extract<HistoryEvent, { type: 'stalled' }>, 'from' | 'at'>) => void,
    private readonly onLost: (why: string) => void,
  ) {
    const { servers, replicated, databases } = stage;
    this.#truths = Array.from({ length: databases }, () => new ServerTruth(wallAhead, servers.length, replicated));
  }

  get held(): readonly EventOf<'held'>[] {
    return this.#all(({ held }) => held);
  }

  get takes(): readonly Take[] {
    return this.#all(({ takes }) => takes);
  }

  get contradictions(): readonly string[] {
    return this.#truths.flatMap(({ contradictions }) => contradictions);
  }

  get lost(): readonly LostWrites[] {
    return this.#all(({ lost }) => lost);
  }

  #all<T extends { lock: string }>(of: (truth: ServerTruth) => readonly T[]): T[] {
    return this.#truths.flatMap((truth, database) =>
      of(truth).map((each) => (database === 0 ? each : { ...each, lock: elsewhere(each.lock) })),
    );
  }

  static async open(
    stage: Stage,
    locks: readonly string[],
    onStood: ServerWatch['onStood'],
    onLost: ServerWatch['onLost'],
  ): Promise<ServerWatch> {
    const watch = new ServerWatch(stage, locks, await wallAhead(), onStood, onLost);
    await Promise.all(stage.servers.map((server) => watch.back(server)));
    return watch;
  }

  /** The server is about to be killed. Its lines until then still count. */
  dies(server: RedisServer): void {
    this.#dying.add(server);
  }

  /** It is about to be killed, or has been. */
  gone(server: RedisServer): void {
    this.#dying.add(server);
    this.#read();
    // No other server has its data.
    if (!this.stage.replicated) this.#end();
    this.#monitors.get(server)?.stop();
    this.#monitors.delete(server);
  }

  /** The server has been restarted, and no client has reached it yet. */
  async back(server: RedisServer): Promise<void> {
    const monitor = await server.monitor();
    this.#dying.delete(server);
    this.#monitors.set(server, monitor);
    // Sentinel disconnects the clients of a server whose role it changes, and no writer reconnects so soon.
    void monitor.ended.then(() => {
      if (this.#monitors.get(server) !== monitor) return;
      this.#take(server, monitor);
      this.#monitors.delete(server);
      if (this.#dying.has(server)) return;
      this.back(server)
        .then(() => this.#readState(server))
        .catch((error: unknown) => this.onLost(String(error)));
    });
  }

  /** A server is idle for a while, and its last lines may not have been read yet. */
  stopped(server: RedisServer, stopped: boolean): void {
    if (stopped) this.#stopped.add(server);
    else this.#stopped.delete(server);
  }

  /** A lock is about to leave this server with its slot. */
  leaves(lock: string, server: RedisServer): void {
    for (const each of this.locks) if (isInSlotOf(each, lock)) this.#note(server, stamp(), 'LEAVES', each);
  }

  /** A replica had everything that its master had then. */
  synced(replica: RedisServer, master: RedisServer, since: number): void {
    this.#note(replica, since, 'SYNCED', String(this.stage.servers.indexOf(master)));
  }

  /** Resolves when no client is active and all lines have been passed on. */
  async finish(): Promise<void> {
    await Promise.all([...this.#monitors.values()].map((monitor) => monitor.settle()));
    this.#read(0);
    this.#end();
  }

  #end(): void {
    for (const truth of this.#truths) truth.end(stamp());
  }

  close(): void {
    clearInterval(this.#reading);
    const monitors = [...this.#monitors.values()];
    this.#monitors.clear();
    for (const monitor of monitors) monitor.stop();
  }

  /** Reads the current state of a server that was not monitored for a while. */
  async #readState(server: RedisServer): Promise<void> {
    const watched = this.locks.filter(isExclusive);
    const state = (await server.command('EVAL', READ_STATE, watched.length, ...watched)) as string[];
    const [seconds, micros, ...entries] = state;
    const at = Number(seconds) * 1_000 + Number(micros) / 1_000 - this.wallAhead;
    this.#note(server, at, 'STATE', ...entries);
  }

  /** Inserts an event of the bench at its place among the lines of the servers. */
  #note(server: RedisServer, at: number, command: string, ...args: string[]): void {
    const node = this.stage.servers.indexOf(server);
    this.#lines.push({ node, time: at + this.wallAhead, command, args, source: 'nemesis', database: 0 });
  }

  /** Passes the lines to the truth that are old enough: no server can still report an earlier one. */
  #read(youngestMs = this.stage.replicated ? LINE_LAG_MS : 0): void {
    for (const [server, monitor] of this.#monitors) this.#take(server, monitor);
    if (this.#stopped.size === 0 || youngestMs === 0) {
      // The lines from before the last check have been read since, regardless of a stop in between.
      const until = (youngestMs === 0 ? stamp() : this.#lastTick) + this.wallAhead - youngestMs;
      this.#lines.sort((a, b) => a.time - b.time);
      const young = this.#lines.findIndex(({ time }) => youngestMs > 0 && time > until);
      const old = this.#lines.splice(0, young < 0 ? this.#lines.length : young);
      for (const [database, truth] of this.#truths.entries())
        truth.read(old.filter((line) => line.database === database));
    }
    const now = stamp();
    if (now - this.#lastTick > STOOD_MS) this.onStood({ from: this.#lastTick, at: now });
    this.#lastTick = now;
  }

  #take(server: RedisServer, monitor: MonitorLog): void {
    const node = this.stage.servers.indexOf(server);
    for (const line of monitor.lines.splice(0)) this.#lines.push(seenAt(line, node, this.stage.servers));
  }
}
