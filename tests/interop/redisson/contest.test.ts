import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { startWorker, type Worker } from '../../support/processes/child.js';
import type { MonitorLine } from '../../support/servers/monitor-log.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import type { ContestOptions, ContestResult } from './contest-flows.js';
import { fairOrder } from '../../support/java/fair-order.js';
import { Jvm, REDISSON_VERSIONS } from './jvm.js';
import { Referee } from '../../support/java/referee.js';

/*
 * Two JVMs with eight threads each and two Node.js processes with eight flows each compete for one lock. They protect a
 * number at a referee, which they read, process and write back.
 */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const CONTESTS = Number(process.env.HOLDFAST_CONTESTS ?? '1');
const FLOWS = 8;
const SECTIONS_EACH = 63;
const SECTIONS = 4 * FLOWS * SECTIONS_EACH;
const KINDS = [
  { kind: 'lock', permits: 1 },
  { kind: 'read-write', permits: 1 },
  { kind: 'fenced', permits: 1 },
  { kind: 'semaphore', permits: 1 },
  { kind: 'semaphore', permits: 3 },
  { kind: 'fair', permits: 1 },
  { kind: 'expirable', permits: 1 },
  { kind: 'expirable', permits: 3 },
] as const;

let server: RedisServer;
let jvms: Jvm[];
let nodes: Worker[];
let contests = 0;
let referee: Referee;

beforeAll(async () => {
  server = await startServer();
  jvms = await Promise.all([Jvm.start(), Jvm.start()]);
  await Promise.all(jvms.map((jvm) => jvm.createClient({ addresses: [server.url] })));
  nodes = await Promise.all([1, 2].map((n) => startWorker({ name: `node-${n}`, execArgv: ['--import', 'tsx'] })));
  await Promise.all(nodes.map((node) => node.createClient({ url: server.url })));
});

afterEach(() => referee.close());

afterAll(async () => {
  await Promise.all([...jvms.map((jvm) => jvm.close()), ...nodes.map((node) => node.close())]);
  await server.stop();
});

describe.each(Array.from({ length: CONTESTS }, (_, i) => i + 1))(`contest %i with Redisson ${version}`, () => {
  test.each(KINDS)(
    '$kind, $permits at a time: no more owners than allowed are inside, and every owner gets in',
    async (on) => {
      const { kind, permits } = on;
      referee = await Referee.start(permits);
      const monitor = kind.includes('fair') ? await server.monitor() : undefined;
      contests += 1;
      const name = `contest:${contests}`;
      const counted = kind === 'semaphore' || kind === 'expirable';
      if (counted) {
        await jvms[0]!.thread('setter').call({ kind, name }, 'trySetPermits', permits);
      }
      const order: ContestOptions = { kind, name, flows: FLOWS, sections: SECTIONS_EACH, port: referee.port };
      const asked = performance.now();
      const results = await Promise.all([
        ...jvms.map(async (jvm, i) => {
          const thread = `contest-${contests}`;
          return (
            await jvm.order<ContestResult>({ op: 'contest', thread, client: 'client', who: `jvm-${i}`, ...order })
          ).result;
        }),
        ...nodes.map(async (node) => {
          return (await node.run(new URL('./contest-flows.ts', import.meta.url), order)) as ContestResult;
        }),
      ]);
      const tookMs = Math.round(performance.now() - asked);
      const waits = results.map(({ longestWaitMs }) => Math.round(longestWaitMs));
      const rate = Math.round((SECTIONS * 1_000) / tookMs);
      const wait = `longest waits: JVMs ${waits.slice(0, 2).join(', ')} ms, Node ${waits.slice(2).join(', ')} ms`;
      console.log(`${kind} (${permits}), Redisson ${version}: ${SECTIONS} sections, ${rate}/s; ${wait}`);

      expect(results.flatMap(({ errors }) => errors)).toEqual([]);
      expect(referee.violations).toEqual([]);
      expect(results.map(({ sections }) => sections)).toEqual(results.map(() => FLOWS * SECTIONS_EACH));
      expect(Object.values(referee.left).reduce((sum, left) => sum + left)).toBe(SECTIONS);
      expect(referee.value).toBe(referee.left.exclusive);
      expect(referee.mostInside).toBeGreaterThanOrEqual(counted ? permits : 1);
      if (monitor) {
        const lines: readonly MonitorLine[] = await monitor.settle();
        monitor.stop();
        expect(fairOrder(lines, name)).toEqual({ violations: [], granted: referee.entered });
      }
      await nothingLeft(name, counted ? permits : undefined);
    },
  );
});

/** No hold, no queue, no subscription; a semaphore has all its permits. */
async function nothingLeft(name: string, permits: number | undefined): Promise<void> {
  const { admin } = server;
  if (permits !== undefined) {
    expect(await admin.get(name)).toBe(String(permits));
    await admin.del(name);
  }
  const outlives = /^(holdfast_requests|redisson_lock_token|redisson_unlock_latch):/;
  await until(
    async () => {
      const keys = (await admin.keys(`*${name}*`)).filter((key) => !outlives.test(key));
      return keys.length === 0 && ((await admin.pubsub('CHANNELS', `*${name}*`)) as string[]).length === 0;
    },
    `nothing is left of ${name}`,
    5_000,
  );
}
