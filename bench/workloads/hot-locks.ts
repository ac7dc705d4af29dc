import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type ClientOptions } from 'holdfast';
import { withWorkers } from '../processes.js';
import { quantile } from '../statistics.js';
import type { Row, Setting, Workload } from './workload.js';

/*
 * Sections of one process on one key, with the options that save requests (docs/hot-locks.md): `handOff.local`,
 * `handOff.keep` and `release: 'background'`. Some rows go through a proxy that adds 1 ms each way.
 */

const DELAY_MS = 1;

interface Order {
  readonly url: string;
  readonly options: ClientOptions;
  readonly flows: number;
  readonly holdMs: number;
  readonly ms: number;
  readonly isDelayed: boolean;
}

interface Timed {
  readonly sections: number;
  readonly seconds: number;
  readonly lengths: readonly number[];
}

/** A proxy that passes bytes on after a delay. */
async function delayed(url: string): Promise<{ url: string; close(): void }> {
  const target = new URL(url);
  const way = new URL(url);
  const sockets = new Set<Socket>();
  const pass = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), DELAY_MS));
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  };
  const server = createServer((client) => {
    const redis = connect(Number(target.port), target.hostname);
    pass(client.setNoDelay(), redis.setNoDelay());
    pass(redis, client);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  way.hostname = '127.0.0.1';
  way.port = String((server.address() as AddressInfo).port);
  return {
    url: way.href,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function hotSections({ url, options, flows, holdMs, ms, isDelayed }: Order): Promise<Timed> {
  const way = isDelayed ? await delayed(url) : { url, close: () => undefined };
  const client = createClient({ url: way.url, callSites: false, ...options });
  await client.ready();
  const lock = client.getLock(`bench:hot:${process.pid}`);
  const lengths: number[] = [];
  let over = performance.now() + ms / 4;
  const flow = async (): Promise<void> => {
    while (performance.now() < over) {
      const began = performance.now();
      await lock.withLock(() => (holdMs === 0 ? undefined : sleep(holdMs)));
      lengths.push(performance.now() - began);
    }
  };
  const all = (): Promise<unknown> => Promise.all(Array.from({ length: flows }, flow));
  await all(); // on optimised code from now on
  lengths.length = 0;
  const start = performance.now();
  over = start + ms;
  await all();
  const seconds = (performance.now() - start) / 1_000;
  await client.close({ releaseHolds: true });
  way.close();
  const every = Math.ceil(lengths.length / 10_000);
  return { sections: lengths.length, seconds, lengths: lengths.filter((_, at) => at % every === 0) };
}

export const tasks = { hotSections };

interface Case {
  readonly subject: string;
  readonly options: ClientOptions;
}

const PLAIN: Case = { subject: 'holdfast', options: {} };
const LOCAL: Case = { subject: 'holdfast, local: 20', options: { handOff: { local: 20 } } };
const KEPT: Case = {
  subject: 'holdfast, keep: 500',
  options: { handOff: { local: 1_000, keep: 500, maxTime: 1_000 } },
};
const BACKGROUND: Case = { subject: 'holdfast, release in the background', options: { release: 'background' } };

function workload(name: string, cases: readonly Case[], flows: number, holdMs: number, isDelayed = false): Workload {
  const run = async ({ server, quick }: Setting): Promise<Row[]> => {
    const rows: Row[] = [];
    for (const { subject, options } of cases) {
      const { url } = server;
      const order: Order = { url, options, flows, holdMs, ms: quick ? 1_000 : 5_000, isDelayed };
      const timed = await withWorkers(1, ([worker]) => worker!.run('hotSections', order));
      const figures = { 'sections/s': timed.sections / timed.seconds, 'p50 ms': quantile(timed.lengths, 0.5) };
      rows.push({ workload: name, subject, figures });
    }
    return rows;
  };
  return { name, run };
}

export const workloads: Workload[] = [
  workload('hot lock, 1 x 50, hold 0', [PLAIN, LOCAL], 50, 0),
  workload('hot lock, 1 x 50, hold 1 ms', [PLAIN, LOCAL], 50, 1),
  workload('hot lock, 1 x 500, hold 0', [PLAIN, LOCAL], 500, 0),
  workload('hot lock, 1 x 500, hold 1 ms', [PLAIN, LOCAL], 500, 1),
  workload('hot lock, 1 x 50, hold 1 ms, network 1 ms', [PLAIN, LOCAL], 50, 1, true),
  workload('hot lock, 1 flow', [PLAIN, KEPT, BACKGROUND], 1, 0),
  workload('hot lock, 1 flow, network 1 ms', [PLAIN, KEPT, BACKGROUND], 1, 0, true),
];
