import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { LockClient } from '../../src/client/create-client.js';
import { closeClients, inFlow, openClient, outcome, pause } from '../support/clients/lock-clients.js';
import { release } from '../../src/redis/scripts/lock.js';
import { FaultProxy } from '../support/proxy/proxy.js';
import { freshName } from '../support/redis.js';
import { startServer, type RedisServer } from '../support/servers/servers.js';
import { elapsed } from '../support/time/elapsed.js';
import { until } from '../support/time/until.js';

/* Calls that end, by time or signal, while their try is pending: what the reply to that try says is no outage. */

const WAIT_MS = 40;
/** Less than the time of an attempt, and more than the way into the line on a busy machine. */
const HANDED_MS = 500;

let server: RedisServer;
let proxy: FaultProxy;
beforeAll(async () => {
  server = await startServer();
});
afterEach(async () => {
  await closeClients();
  await proxy.close();
  const stays = /holdfast_requests|^permits:/;
  await until(async () => (await server.keys()).every((key) => stays.test(key)), 'no key is left');
});
afterAll(() => server.stop());

interface Held {
  release(): Promise<void>;
}

function aborting(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

interface Limits {
  readonly waitTime?: number;
  readonly signal: AbortSignal;
}

/** Takes the lock or permit, and releases it. */
type Section = (client: LockClient, name: string, limits: Limits) => Promise<unknown>;

const KINDS: [string, Section][] = [
  ['lock', (client, name, limits) => client.getLock(name).withLock(limits, () => undefined)],
  ['fair lock', (client, name, limits) => client.getFairLock(name).withLock(limits, () => undefined)],
  [
    'semaphore',
    (client, name, limits) =>
      client.getSemaphore(`permits:${name}`, { permits: 1 }).withPermits(limits, () => undefined),
  ],
];

/**
 * Three calls in one line. The first try is on its way to a server that does not know its script; then the signal of the
 * first call aborts. The second call tries, and its time limit passes while that try is pending.
 */
async function threeCalls(section: Section) {
  proxy = await FaultProxy.start(server.address);
  const client = await openClient({ url: proxy.url });
  await server.scriptFlush();
  const name = freshName();
  const signals = [new AbortController(), new AbortController(), new AbortController()] as const;
  const call = (at: 0 | 1 | 2, waitTime?: number): Promise<unknown> =>
    outcome(inFlow(() => section(client, name, { signal: signals[at].signal, ...(waitTime && { waitTime }) })));
  const stalled = proxy.stall({ kind: 'command', direction: 'to-server' });
  const calls = [call(0), call(1, WAIT_MS), call(2, 10_000)] as const;
  signals[0].abort();
  await pause(WAIT_MS + 60);
  return { client, name, calls, signals, stalled };
}

test('a call whose time passes behind the try of a call with a signal asks Redis itself: that signal could end the try', async () => {
  proxy = await FaultProxy.start(server.address);
  const client = await openClient({ url: proxy.url, commandTimeout: 30_000 });
  const name = freshName();
  const asked = proxy.observe({ command: 'EVALSHA', contains: name, times: Infinity });
  const silent = proxy.stall({ kind: 'command', direction: 'to-client' });
  const { signal, abort } = aborting();
  const first = outcome(inFlow(() => client.getLock(name).acquire({ signal })));
  await until(() => asked.count === 1, 'the first call has sent its try');
  const second = outcome(inFlow(() => client.getLock(name).withLock({ waitTime: WAIT_MS }, () => undefined)));
  // A repeat of the first try comes after a third of the command deadline, 10 s.
  await until(() => asked.count === 2, 'the second call has sent one, too', 5_000);
  abort();
  silent.lift();
  expect([await first, await second]).toEqual(['ERR_LOCK_ABORTED', 'ok']);
});

test('a call that does not wait, behind a release in the background, does not wait for a whole deadline of that', async () => {
  proxy = await FaultProxy.start(server.address);
  const client = await openClient({ url: proxy.url, commandTimeout: 3_000 });
  const name = freshName();
  const hold = await inFlow(() => client.getLock(name).acquire({ release: 'background' }));
  const released = proxy.observe({ command: 'EVALSHA', sha: release.script!.sha });
  const silent = proxy.stall({ kind: 'command', direction: 'to-client' });
  await hold.release();
  await until(() => released.count === 1, 'the release is on its way');
  const began = performance.now();
  expect(await outcome(inFlow(() => client.getLock(name).tryLock()))).toBe('ERR_LOCK_REDIS_UNAVAILABLE');
  // A third of a command deadline, and a command deadline. It was two.
  expect(elapsed(began)).toBeLessThan(5_000);
  silent.lift();
});

describe.each(KINDS)('a call for a %s whose time passes while its try is pending', (_, section) => {
  test('gets what Redis answers, also if Redis asks for the script again', async () => {
    const { calls, stalled } = await threeCalls(section);
    stalled.lift();
    expect(await Promise.all(calls)).toEqual(['ERR_LOCK_ABORTED', 'ok', 'ok']);
  });

  test('rejects with an AbortError if its signal aborts then, and the call behind it goes on', async () => {
    const { calls, signals, stalled } = await threeCalls(section);
    signals[1].abort();
    stalled.lift();
    expect(await Promise.all(calls)).toEqual(['ERR_LOCK_ABORTED', 'ERR_LOCK_ABORTED', 'ok']);
  });

  test('rejects as closed if its client closes then', async () => {
    const { client, calls, stalled } = await threeCalls(section);
    const closed = client.close();
    stalled.lift();
    await closed;
    expect((await Promise.all(calls)).slice(1)).toEqual(['ERR_LOCK_CLIENT_CLOSED', 'ERR_LOCK_CLIENT_CLOSED']);
  });

  test('gets what Redis answers on the next connection', async () => {
    const { calls } = await threeCalls(section);
    proxy.cut({ kind: 'command' });
    proxy.lift();
    expect(await Promise.all(calls)).toEqual(['ERR_LOCK_ABORTED', 'ok', 'ok']);
  });
});

type Take = (limits?: Limits) => Promise<Held>;
/** How the call ends: its hand-over settles a call for a lock, and a permit that is handed over is for the next call as well. */
const HANDED: [string, string, (client: LockClient, name: string) => Take][] = [
  ['lock', 'ERR_LOCK_ABORTED', (client, name) => (limits) => client.getLock(name).acquire(limits)],
  ['fair lock', 'ERR_LOCK_ABORTED', (client, name) => (limits) => client.getFairLock(name).acquire(limits)],
  [
    'permit',
    'ERR_LOCK_TIMEOUT',
    (client, name) => (limits) =>
      client.getPermitExpirableSemaphore(`permits:${name}`, { permits: 1 }).acquirePermit(limits),
  ],
];

test.each(HANDED)(
  'a %s that is handed to a call whose time has passed, and that is aborted then, is free',
  async (_, code, of) => {
    proxy = await FaultProxy.start(server.address);
    const client = await openClient({ url: proxy.url });
    const name = freshName();
    const take = of(client, name);
    const held = await inFlow(() => take());
    await (await inFlow(() => of(client, freshName())())).release();
    const { signal, abort } = aborting();
    const waits = outcome(inFlow(() => take({ waitTime: HANDED_MS, signal })));
    // It is subscribed, and Redis has answered the try that follows.
    await until(() => {
      const at = proxy.log.findIndex((each) => each.name === 'SUBSCRIBE');
      const isTry = ({ args }: { args: readonly string[] }): boolean => args.some((arg) => arg.endsWith(name));
      return (
        at >= 0 &&
        proxy.log.slice(at).some((each) => /^EVAL/.test(each.name) && isTry(each) && each.answeredAt !== undefined)
      );
    }, 'the call is parked');
    for (let i = 0; i < 3; i += 1) await client.getLock(name).isLocked();
    const stalled = proxy.stall({ kind: 'command', direction: 'to-server' });
    const released = held.release();
    await pause(HANDED_MS + 60);
    abort();
    stalled.lift();
    await released;
    expect(await waits).toBe(code);
    await (await inFlow(() => take())).release();
    // The call of the first holder, and the last one.
    await until(() => client.holds().length === 0, 'no hold is left');
  },
);

test('the message of a call that ends in an outage says for how long it waited for a reply', async () => {
  proxy = await FaultProxy.start(server.address);
  const client = await openClient({ url: proxy.url });
  const lock = client.getLock(freshName());
  await lock.withLock(() => undefined);
  const refused = proxy.refuse('reset');
  proxy.cut({ kind: 'command' });
  const failed = (waitTime: number): Promise<unknown> =>
    inFlow(() => lock.acquire({ waitTime }).catch((error: unknown) => error));
  const error = await failed(3_200);
  expect(error).toMatchObject({ code: 'ERR_LOCK_REDIS_UNAVAILABLE' });
  // Its time passes while the client tries again.
  const [, waited] = /within (\d+) ms, when its call ended/.exec(String(error)) ?? [];
  expect(Number(waited)).toBeLessThan(3_000);
  refused.lift();
});
