import { now } from '../monotonic.js';
import { openPeer } from '../peers.js';
import { Worker } from '../processes.js';
import { median } from '../statistics.js';
import type { Row, Setting, Workload } from './workload.js';

/* Many ids that one section needs all of: as values of a group, as locks of their own, as one acquire of redlock. */

const NAME = '500 ids in one section';
const IDS = Array.from({ length: 500 }, (_, i) => `bench:id:${i}`);
const SUBJECTS = ['holdfast group', 'holdfast 500 locks', 'redlock'] as const;
type Subject = (typeof SUBJECTS)[number];

/** ms of each section, in their order. */
async function lockAll(url: string, subject: Subject, sections: number): Promise<number[]> {
  const { section, close } = await opened(url, subject);
  const times: number[] = [];
  for (let i = 0; i < sections; i += 1) {
    const began = now();
    await section();
    times.push(now() - began);
  }
  await close();
  return times;
}

interface Opened {
  section(): Promise<void>;
  close(): Promise<void>;
}

async function opened(url: string, subject: Subject): Promise<Opened> {
  if (subject === 'redlock') {
    const { default: Redlock } = await import('redlock');
    const { Redis } = await import('ioredis');
    const redis = new Redis(url);
    const redlock = new Redlock([redis], { retryCount: 0 });
    return {
      async section() {
        const lock = await redlock.acquire(IDS, 30_000);
        await lock.release();
      },
      close: () => Promise.resolve(redis.disconnect()),
    };
  }
  if (subject === 'holdfast group') {
    const { createClient } = await import('holdfast');
    const client = createClient({ url, callSites: false });
    await client.ready();
    return {
      section: () => client.getMultiLock('bench:group', IDS).withLock(() => undefined),
      close: () => client.close(),
    };
  }
  const peer = await openPeer('holdfast withLock', { url, callSites: false });
  return {
    async section() {
      const releases = await Promise.all(IDS.map((id) => peer.acquire(id)));
      await Promise.all(releases.map((release) => release()));
    },
    close: () => peer.close(),
  };
}

export const tasks = { lockAll };

async function compare({ server, quick }: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  const sections = quick ? 30 : 200;
  for (const subject of SUBJECTS) {
    await using worker = new Worker();
    const { result, requests } = await server.countCommands([], () =>
      worker.run('lockAll', server.url, subject, sections),
    );
    const times = result.slice(sections / 10);
    rows.push({
      workload: NAME,
      subject,
      figures: { 'p50 ms': median(times), 'longest ms': Math.max(...times), 'requests/section': requests / sections },
    });
  }
  return rows;
}

export const workloads: Workload[] = [{ name: NAME, run: compare }];
