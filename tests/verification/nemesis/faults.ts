import { setTimeout as pause } from 'node:timers/promises';
import type { Worker } from '../../support/processes/child.js';
import type { CommandSelector } from '../../support/proxy/fault.js';
import type { HistoryEvent } from '../../support/history/history-events.js';
import { stamp } from '../../support/history/history-recorder.mjs';
import { ALL_SCRIPTS } from '../../support/lua/lock-scripts.js';
import { kindOf, namesAt } from './kinds.js';
import { latchLock } from './latch-flow.js';
import type { RedisServer } from '../../support/servers/servers.js';
import type { Network, SetFault } from './network.js';
import type { FaultName, ScheduledFault } from './schedule.js';
import type { ServerWatch } from './server-watch.js';
import type { Stage } from './stage.js';

/** The targets of faults. */
export interface Bench {
  readonly stage: Stage;
  readonly watch: ServerWatch;
  /** One for each process. */
  readonly networks: readonly Network[];
  /** Only faults without data loss, and replicas confirm every grant. */
  readonly planned: boolean;
  /** Keys of locks. */
  readonly locks: readonly string[];
  /** Names whose slots move. */
  readonly movable: readonly string[];
  worker(process: number): Worker;
  /** Writes the data that a new server needs. */
  prepare(server: RedisServer): Promise<void>;
  /** A new worker takes the place of this one, which is dead. */
  replace(process: number): Promise<void>;
  /** Waits until everything is as it should be again. */
  healed(): Promise<void>;
  broken(event: Omit<Extract<HistoryEvent, { type: 'broken' }>, 'type' | 'process'>): void;
  /** Since then a server may have lost acknowledged writes. The bench does not see this for every kind. */
  mayHaveLost(from: number): void;
}

/** Resolves when the fault has ended; `struck` is the number of times it had an effect. */
type Strike = (bench: Bench, fault: ScheduledFault) => Promise<number>;

const ERRORS = ['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'NOSCRIPT'];
/** The payloads of scripts for a free or open object, and possible numbers of permits. */
const PAYLOADS = ['0', '1', '3', '9999', '-1', 'not a number', ''];
const NOWHERE = { host: '127.0.0.1', port: 9 };

/** A fault of the proxy that strikes commands, for a while. */
const onCommands =
  (set: (network: Network, selector: CommandSelector, fault: ScheduledFault) => SetFault): Strike =>
  async ({ networks }, fault) => {
    const sha = fault.script === undefined ? {} : { sha: ALL_SCRIPTS.get(fault.script)!.sha };
    const selector = { command: ['EVALSHA', 'EVAL'], times: fault.times, ...sha };
    const set_ = set(networks[fault.process]!, selector, fault);
    await pause(fault.ms);
    set_.lift();
    return set_.count;
  };

/** A fault of the proxy that lasts until it is lifted. */
const forAWhile =
  (set: (network: Network, fault: ScheduledFault) => SetFault): Strike =>
  async ({ networks }, fault) => {
    const set_ = set(networks[fault.process]!, fault);
    await pause(fault.ms);
    set_.lift();
    return Math.min(1, set_.count);
  };

/** A latch lives for one call of a flow. */
const liveLatch = async (stage: Stage, drawn: string): Promise<string | undefined> =>
  (await stage.leftovers()).keys.find((key) => latchLock(key) === drawn);

const subscriber = { kind: 'subscriber' } as const;

export const STRIKES: Readonly<Record<FaultName, Strike>> = {
  cut: async ({ networks }, { process }) => networks[process]!.cut({ kind: 'command' }),
  'cut-before': onCommands((network, selector) => network.set('cutBefore', selector)),
  'cut-after': onCommands((network, selector) => network.set('cutAfter', selector)),
  swallow: onCommands((network, selector) => network.set('swallow', selector)),
  garble: onCommands((network, selector) => network.set('garble', selector)),
  'answer-error': onCommands((network, selector, { choice }) =>
    network.set('answer', selector, `-${ERRORS[Math.floor(choice * ERRORS.length)]!} said by the proxy\r\n`),
  ),
  'late-command': async ({ networks }, { process, ms, times, script }) => {
    const sha = script === undefined ? {} : { sha: ALL_SCRIPTS.get(script)!.sha };
    const held = networks[process]!.set('holdCommand', { command: ['EVALSHA', 'EVAL'], times, ...sha }, ms);
    // Each is held for its own time from when it came; lifting delivers at once.
    await pause(ms + 1_000);
    held.lift();
    return held.count;
  },
  'late-reply': async ({ networks }, { process, ms, times, script }) => {
    const sha = script === undefined ? {} : { sha: ALL_SCRIPTS.get(script)!.sha };
    const held = networks[process]!.set('holdReply', { command: ['EVALSHA', 'EVAL'], times, ...sha }, ms);
    await pause(ms + 1_000);
    held.lift();
    return held.count;
  },
  stall: forAWhile((network, { choice }) =>
    network.set('stall', choice < 0.3 ? {} : { direction: choice < 0.65 ? 'to-server' : 'to-client' }),
  ),
  'stall-subscriber': forAWhile((network) => network.set('stall', subscriber)),
  delay: forAWhile((network, { choice }) => network.set('delay', () => Math.random() * 2 * (20 + choice * 250))),
  throttle: forAWhile((network, { choice }) => network.set('throttle', 1_000 + choice * 20_000)),
  'cut-subscriber': async ({ networks }, { process, ms, times }) => {
    let cut = 0;
    for (let i = 0; i < times; i++) {
      cut += networks[process]!.cut(subscriber);
      await pause(ms);
    }
    return cut;
  },
  refuse: async ({ networks }, { process, ms }) => {
    const refusal = networks[process]!.set('refuse', 'reset');
    networks[process]!.cut();
    await pause(ms);
    refusal.lift();
    return 1;
  },
  hang: async ({ networks }, { process, ms }) => {
    const refusal = networks[process]!.set('refuse', 'hang');
    networks[process]!.cut();
    await pause(ms);
    refusal.lift();
    return 1;
  },
  'stop-process': async (bench, { process, ms }) => {
    const worker = bench.worker(process);
    if (!worker.running || worker.stands) return 0;
    await worker.pause();
    await pause(ms);
    worker.resume();
    return 1;
  },
  sleep: async (bench, { process, ms }) => {
    const worker = bench.worker(process);
    // A stopped process would sleep when it continues, and no code would wake it.
    if (!worker.running || worker.stands) return 0;
    await worker.sleep(ms).catch(() => undefined); // killed in between
    return 1;
  },
  // By the clock of one process. The clock of the servers does not change.
  'set-clock': async (bench, { process, ms, choice }) => {
    await bench
      .worker(process)
      .setClock(choice < 0.5 ? ms : -ms)
      .catch(() => undefined); // killed in between
    return 1;
  },
  'block-loop': async (bench, { process, ms }) => {
    await bench
      .worker(process)
      .block(ms)
      .catch(() => undefined); // killed in between
    return 1;
  },
  'kill-process': async (bench, { process }) => {
    await bench.worker(process).kill9();
    await bench.replace(process);
    return 1;
  },
  // Between this process and one server; the servers see each other, and other processes see it.
  partition: async ({ networks }, { process, ms, choice }) => {
    const proxy = networks[process]!.pick(choice);
    const refusal = proxy.refuse(choice < 0.5 ? 'reset' : 'hang');
    proxy.cut();
    await pause(ms);
    refusal.lift();
    return 1;
  },
  'server-stop': async (bench, { ms, choice }) => {
    const server = await bench.stage.master(choice);
    const from = stamp();
    await server.pause();
    bench.watch.stopped(server, true);
    await pause(ms);
    server.resume();
    bench.watch.stopped(server, false);
    // Its replica may have taken over.
    await bench.healed();
    bench.mayHaveLost(from);
    return 1;
  },
  'server-restart': async (bench) => {
    const server = await bench.stage.master(0);
    // No client reaches the new server before it is monitored.
    const refusals = bench.networks.map((network) => network.set('refuse', 'reset'));
    const from = stamp();
    bench.watch.gone(server);
    await server.restart();
    await bench.watch.back(server);
    await bench.prepare(server);
    bench.broken({ from, at: stamp(), locks: 'all', tokensLost: true });
    for (const refusal of refusals) refusal.lift();
    return 1;
  },
  // Writes that its replica does not have yet are lost.
  'server-kill': async (bench, { choice }) => {
    const server = await bench.stage.master(choice);
    const from = stamp();
    bench.watch.dies(server);
    await server.kill9();
    bench.watch.gone(server);
    await bench.stage.successorOf(server);
    await server.start();
    await bench.watch.back(server);
    await bench.healed();
    bench.mayHaveLost(from);
    return 1;
  },
  'server-failover': async (bench, { choice }) => {
    const from = stamp();
    await bench.stage.failover(choice, bench.planned);
    await bench.healed();
    if (!bench.planned) bench.mayHaveLost(from);
    return 1;
  },
  'server-slot-move': async (bench, { choice, ms }) => {
    const drawn = bench.movable[Math.floor(choice * bench.movable.length)]!;
    const lock = kindOf(drawn) === 'latch' ? await liveLatch(bench.stage, drawn) : drawn;
    if (lock === undefined) return 0;
    bench.watch.leaves(lock, await bench.stage.masterOf(lock));
    await bench.stage.moveSlot(lock, (choice * 7) % 1, ms);
    await bench.healed();
    return 1;
  },
  'server-pause-all': async ({ stage }, { ms, choice }) => {
    await (await stage.master(choice)).clientPause(ms, 'ALL');
    await pause(ms);
    return 1;
  },
  'server-pause-write': async ({ stage }, { ms, choice }) => {
    await (await stage.master(choice)).clientPause(ms, 'WRITE');
    await pause(ms);
    return 1;
  },
  'server-script-flush': async ({ stage }) => {
    await Promise.all(stage.servers.map((server) => server.scriptFlush()));
    return 1;
  },
  'server-oom': async ({ stage }, { ms, choice }) => {
    const server = await stage.master(choice);
    await server.setMaxmemory(1);
    await pause(ms);
    await server.setMaxmemory(0);
    return 1;
  },
  'server-kill-pubsub': async ({ stage }, { choice }) => (await stage.master(choice)).killPubsub(),
  'server-readonly': async ({ stage }, { ms }) => {
    const server = await stage.master(0);
    await server.replicaOf(NOWHERE);
    await pause(ms);
    await server.replicaOf(undefined);
    return 1;
  },
  // To all subscribers, although nothing has happened.
  'server-publish': async ({ stage }, { choice }) => {
    const server = await stage.master(choice);
    let told = 0;
    for (const [list, publish] of [
      ['CHANNELS', 'PUBLISH'],
      ['SHARDCHANNELS', 'SPUBLISH'],
    ] as const) {
      const channels = ((await server.command('PUBSUB', list)) as string[]).filter((name) =>
        name.startsWith('redisson_'),
      );
      for (const channel of channels)
        for (const payload of PAYLOADS) told += Number(await server.command(publish, channel, payload));
    }
    return Math.min(1, told);
  },
  'server-delete-key': async (bench, { choice }) => {
    const { stage, locks } = bench;
    const keys = new Set((await stage.leftovers()).keys);
    const held = locks.filter((lock) => keys.has(lock));
    const among = held.length > 0 ? held : locks;
    const lock = among[Math.floor(choice * among.length)]!;
    const from = stamp();
    const deleted = Number(await (await stage.masterOf(lock)).command('DEL', lock));
    bench.broken({ from, at: stamp(), locks: namesAt(lock) });
    return deleted;
  },
};
