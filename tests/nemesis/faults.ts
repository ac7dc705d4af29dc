import { setTimeout as pause } from 'node:timers/promises';
import type { Worker } from '../support/child.js';
import type { CommandSelector, Fault } from '../support/fault.js';
import type { HistoryEvent } from '../support/history-events.js';
import { stamp } from '../support/history-recorder.mjs';
import { LOCK_SCRIPTS } from '../support/lock-scripts.js';
import type { FaultProxy } from '../support/proxy.js';
import type { RedisServer } from '../support/servers.js';
import type { FaultName, ScheduledFault } from './schedule.js';

/** What faults strike. */
export interface Bench {
  readonly server: RedisServer;
  /** One for each process. */
  readonly proxies: readonly FaultProxy[];
  readonly locks: readonly string[];
  worker(process: number): Worker;
  /** A new worker takes the place of this one, which is dead. */
  replace(process: number): Promise<void>;
  /** Before the server is killed, and when it has been started again and nobody has reached it yet. */
  serverGone(): void;
  serverBack(): Promise<void>;
  broken(event: Omit<Extract<HistoryEvent, { type: 'broken' }>, 'type' | 'process'>): void;
}

/** Resolves when the fault is over; `struck` says how often it has really done something. */
type Strike = (bench: Bench, fault: ScheduledFault) => Promise<number>;

const ERRORS = ['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'NOSCRIPT'];
const NOWHERE = { host: '127.0.0.1', port: 9 };

/** A fault of the proxy that strikes commands, for a while. */
const onCommands =
  (set: (proxy: FaultProxy, selector: CommandSelector, fault: ScheduledFault) => Fault): Strike =>
  async ({ proxies }, fault) => {
    const sha = fault.script === undefined ? {} : { sha: LOCK_SCRIPTS.get(fault.script)!.sha };
    const selector = { command: ['EVALSHA', 'EVAL'], times: fault.times, ...sha };
    const set_ = set(proxies[fault.process]!, selector, fault);
    await pause(fault.ms);
    set_.lift();
    return set_.count;
  };

/** A fault of the proxy that lasts until it is lifted. */
const forAWhile =
  (set: (proxy: FaultProxy, fault: ScheduledFault) => Fault): Strike =>
  async ({ proxies }, fault) => {
    const set_ = set(proxies[fault.process]!, fault);
    await pause(fault.ms);
    set_.lift();
    return Math.min(1, set_.count);
  };

const subscriber = { kind: 'subscriber' } as const;

export const STRIKES: Readonly<Record<FaultName, Strike>> = {
  cut: async ({ proxies }, { process }) => proxies[process]!.cut({ kind: 'command' }),
  'cut-before': onCommands((proxy, selector) => proxy.cutBefore(selector)),
  'cut-after': onCommands((proxy, selector) => proxy.cutAfter(selector)),
  swallow: onCommands((proxy, selector) => proxy.swallow(selector)),
  garble: onCommands((proxy, selector) => proxy.garble(selector)),
  'answer-error': onCommands((proxy, selector, { choice }) =>
    proxy.answer(selector, `-${ERRORS[Math.floor(choice * ERRORS.length)]!} said by the proxy\r\n`),
  ),
  'late-command': async ({ proxies }, { process, ms, times, script }) => {
    const sha = script === undefined ? {} : { sha: LOCK_SCRIPTS.get(script)!.sha };
    const held = proxies[process]!.holdCommand({ command: ['EVALSHA', 'EVAL'], times, ...sha }, ms);
    // Each is held for its own time from when it came; lifting delivers at once.
    await pause(ms + 1_000);
    held.lift();
    return held.count;
  },
  'late-reply': async ({ proxies }, { process, ms, times, script }) => {
    const sha = script === undefined ? {} : { sha: LOCK_SCRIPTS.get(script)!.sha };
    const held = proxies[process]!.holdReply({ command: ['EVALSHA', 'EVAL'], times, ...sha }, ms);
    await pause(ms + 1_000);
    held.lift();
    return held.count;
  },
  stall: forAWhile((proxy, { choice }) =>
    proxy.stall(choice < 0.3 ? {} : { direction: choice < 0.65 ? 'to-server' : 'to-client' }),
  ),
  'stall-subscriber': forAWhile((proxy) => proxy.stall(subscriber)),
  delay: forAWhile((proxy, { choice }) => proxy.delay(() => Math.random() * 2 * (20 + choice * 250))),
  throttle: forAWhile((proxy, { choice }) => proxy.throttle(1_000 + choice * 20_000)),
  'cut-subscriber': async ({ proxies }, { process, ms, times }) => {
    let cut = 0;
    for (let i = 0; i < times; i++) {
      cut += proxies[process]!.cut(subscriber);
      await pause(ms);
    }
    return cut;
  },
  refuse: async ({ proxies }, { process, ms }) => {
    const refusal = proxies[process]!.refuse('reset');
    proxies[process]!.cut();
    await pause(ms);
    refusal.lift();
    return 1;
  },
  hang: async ({ proxies }, { process, ms }) => {
    const refusal = proxies[process]!.refuse('hang');
    proxies[process]!.cut();
    await pause(ms);
    refusal.lift();
    return 1;
  },
  'stop-process': async (bench, { process, ms }) => {
    const worker = bench.worker(process);
    if (!worker.running) return 0;
    await worker.pause();
    await pause(ms);
    worker.resume();
    return 1;
  },
  'block-loop': async (bench, { process, ms }) => {
    await bench
      .worker(process)
      .block(ms)
      .catch(() => undefined); // killed meanwhile
    return 1;
  },
  'kill-process': async (bench, { process }) => {
    await bench.worker(process).kill9();
    await bench.replace(process);
    return 1;
  },
  'server-stop': async ({ server }, { ms }) => {
    await server.pause();
    await pause(ms);
    server.resume();
    return 1;
  },
  'server-restart': async (bench) => {
    // Nobody reaches the new one before it is watched.
    const refusals = bench.proxies.map((proxy) => proxy.refuse('reset'));
    const from = stamp();
    bench.serverGone();
    await bench.server.restart();
    await bench.serverBack();
    bench.broken({ from, at: stamp(), locks: 'all' });
    for (const refusal of refusals) refusal.lift();
    return 1;
  },
  'server-pause-all': async ({ server }, { ms }) => {
    await server.clientPause(ms, 'ALL');
    await pause(ms);
    return 1;
  },
  'server-pause-write': async ({ server }, { ms }) => {
    await server.clientPause(ms, 'WRITE');
    await pause(ms);
    return 1;
  },
  'server-script-flush': async ({ server }) => {
    await server.scriptFlush();
    return 1;
  },
  'server-oom': async ({ server }, { ms }) => {
    await server.setMaxmemory(1);
    await pause(ms);
    await server.setMaxmemory(0);
    return 1;
  },
  'server-kill-pubsub': ({ server }) => server.killPubsub(),
  'server-readonly': async ({ server }, { ms }) => {
    await server.replicaOf(NOWHERE);
    await pause(ms);
    await server.replicaOf(undefined);
    return 1;
  },
  'server-delete-key': async (bench, { choice }) => {
    const lock = bench.locks[Math.floor(choice * bench.locks.length)]!;
    const from = stamp();
    const deleted = Number(await bench.server.command('DEL', lock));
    bench.broken({ from, at: stamp(), locks: [lock] });
    return deleted;
  },
};
