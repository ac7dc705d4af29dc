import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { now } from '../../../bench/monotonic.js';
import { quantile } from '../../../bench/statistics.js';
import { createClient, type LockClient } from '../../../src/client/create-client.js';
import { inFlow, pause } from '../../support/clients/lock-clients.js';
import { startServer, type RedisServer } from '../../support/servers/servers.js';
import { until } from '../../support/time/until.js';
import { Jvm, REDISSON_VERSIONS } from './jvm.js';
import { expectWoken, NOT_WOKEN_MS } from './limits.js';
import { LAST, wakeRows, type Call } from './wake-rows.js';
import { HoldfastActor } from './wire/holdfast-actor.js';

/* Each kind of process wakes the waiters of the other kind. */

const version = process.env.HOLDFAST_REDISSON ?? REDISSON_VERSIONS[0];
const HAND_OFFS = 1_000;
/** Of each row, in each direction. */
const WAKE_UPS = 20;

let server: RedisServer;
let jvm: Jvm;
let client: LockClient;
let names = 0;
const wakes: number[] = [];

beforeAll(async () => {
  server = await startServer();
  jvm = await Jvm.start();
  await jvm.createClient({ addresses: [server.url] });
  client = createClient({ url: server.url });
});

afterAll(async () => {
  if (wakes.length > 0) {
    const [half, longest] = [quantile(wakes, 0.5).toFixed(1), Math.max(...wakes).toFixed(0)];
    console.log(
      `${wakes.length} wake-ups over every channel, Redisson ${version}: p50 ${half} ms, at most ${longest} ms`,
    );
  }
  await client.close();
  await jvm.close();
  await server.stop();
});

interface Party {
  /** When the call began and when it was answered. */
  call(call: Call): Promise<{ from: number; until: number; result: unknown }>;
}

const nodeParty = (): Party => {
  const actor = new HoldfastActor(new Map([['N', client]]), 'N.1', '');
  return {
    async call([object, method, ...args]) {
      const from = now();
      const result = await actor.call(object, method, args);
      return { from, until: now(), result };
    },
  };
};

const jvmParty = (thread: string): Party => ({
  call: ([object, method, ...args]) => jvm.thread(thread).call(object, method, ...args),
});

const rowsHere = wakeRows('').filter((row) => row.in === undefined || row.in.includes(version));

/** Returns the ms from when the one opens until the other is inside. */
async function wakeUp(waitsIn: 'JVM' | 'Node', what: string, round: number): Promise<number> {
  const name = `wake:${++names}`;
  const row = wakeRows(name).find((each) => each.what === what)!;
  const thread = jvm.thread('wake');
  const [waiter, opener] = waitsIn === 'JVM' ? [jvmParty('wake'), nodeParty()] : [nodeParty(), jvmParty('wake')];
  let last: unknown;
  for (const call of row.before) last = (await opener.call(call)).result;
  const waiting = waiter.call(row.waits);
  await until(
    async () => ((await server.admin.pubsub('CHANNELS', `*${name}*`)) as string[]).length > 0,
    'the waiter has subscribed',
  );
  // Alternate between a release around the second try of the waiter and one after it has parked.
  const early = round % 2 === 0;
  if (waitsIn === 'JVM' && (row.redissonMisses || !early)) await thread.parked();
  else await pause(early ? round / 4 : 4 * round);
  const [object, method, ...args] = row.opens;
  const { from } = await opener.call([object, method, ...args.map((arg) => (arg === LAST ? last : arg))]);
  const { until: at } = await waiting;
  if (row.leaves) await waiter.call(row.leaves);
  await server.admin.del(name, `{${name}}:timeout`);
  return at - from;
}

describe(`wake-ups with Redisson ${version}`, () => {
  test.each(rowsHere.flatMap(({ what }) => [['JVM', what] as const, ['Node', what] as const]))(
    'a waiter in %s: %s',
    async (waitsIn, what) => {
      const took: number[] = [];
      for (let i = 0; i < WAKE_UPS; i += 1) {
        const ms = await wakeUp(waitsIn, what, i);
        wakes.push(ms);
        took.push(ms);
        expect(ms).toBeLessThan(NOT_WOKEN_MS);
      }
      expectWoken(took);
    },
  );

  test(`${HAND_OFFS} hand-overs in turn from Redisson to Holdfast and back`, async () => {
    const lock = { kind: 'lock', name: 'alternating' };
    const parties = { JVM: jvmParty('alternating'), Node: nodeParty() };
    const taken = { JVM: [] as number[], Node: [] as number[] };
    let holder = 'JVM' as 'JVM' | 'Node';
    await parties.JVM.call([lock, 'lock']);
    for (let i = 0; i < HAND_OFFS; i += 1) {
      const next: 'JVM' | 'Node' = holder === 'JVM' ? 'Node' : 'JVM';
      const waiting = parties[next].call([lock, 'lock']);
      await pause(4 + (i % 5));
      const { from } = await parties[holder].call([lock, 'unlock']);
      taken[next].push((await waiting).until - from);
      holder = next;
    }
    await parties[holder].call([lock, 'unlock']);
    const line = (to: 'JVM' | 'Node'): string =>
      `to ${to} p50 ${quantile(taken[to], 0.5).toFixed(2)} ms, p99 ${quantile(taken[to], 0.99).toFixed(2)} ms`;
    console.log(`${HAND_OFFS} alternating hand-offs, Redisson ${version}: ${line('Node')}; ${line('JVM')}`);
    expectWoken(taken.JVM);
    expectWoken(taken.Node);
  });

  test('a Redisson waiter enters beside 50 waiters of one Node.js process that hand over locally', async () => {
    const SECTIONS = 60;
    for (const holdMs of [0, 1, 20]) {
      const name = `handed-on:${holdMs}`;
      let stop = false;
      let local = 0;
      const flow = async (): Promise<void> => {
        while (!stop) {
          await client.getLock(name).withLock(async () => {
            local += 1;
            if (holdMs > 0) await pause(holdMs);
          });
        }
      };
      const flows = Array.from({ length: 50 }, () => inFlow(flow));
      await pause(100);
      const waits: number[] = [];
      const passed: number[] = [];
      for (let i = 0; i < SECTIONS; i += 1) {
        const before = local;
        const { from, until: at } = await jvmParty('outsider').call([{ kind: 'lock', name }, 'lock']);
        waits.push(at - from);
        passed.push(local - before);
        await jvmParty('outsider').call([{ kind: 'lock', name }, 'unlock']);
      }
      stop = true;
      await Promise.all(flows);
      const [longest, most] = [Math.max(...waits), Math.max(...passed)];
      console.log(
        `a JVM thread beside 50 Node waiters, hold ${holdMs} ms, Redisson ${version}: longest wait ${longest.toFixed(0)} ms, ` +
          `p50 ${quantile(waits, 0.5).toFixed(1)} ms; at most ${most} local sections in between`,
      );
      expect(longest).toBeLessThan(1_000);
    }
  });
});
