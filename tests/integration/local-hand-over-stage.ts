import type { LockClient } from '../../src/client/create-client.js';
import type { Hold } from '../../src/holding/hold.js';
import type { Lock } from '../../src/locks/lock.js';
import * as scripts from '../../src/redis/scripts/lock.js';
import { answered, inFlow, openClient, openProxy, type ClientSettings } from '../support/clients/lock-clients.js';
import type { FaultProxy } from '../support/proxy/proxy.js';
import { admin, freshName } from '../support/redis.js';
import { until } from '../support/time/until.js';

/* What the tests of local hand-overs share. `maxTime` is set: unless a test says so, it does not end a streak. */

export const LOCAL_MS = 2_000;
export const ACQUIRE = scripts.acquire.script!.sha;
export const HAND_OFF = scripts.handOff.script!.sha;
const RELEASE = scripts.release.script!.sha;
const NAMES: Readonly<Record<string, string>> = { [ACQUIRE]: 'acquire', [HAND_OFF]: 'hand-off', [RELEASE]: 'release' };

export interface Bench {
  readonly proxy: FaultProxy;
  readonly client: LockClient;
  readonly lock: Lock;
  readonly name: string;
}

export async function bench(
  handOff: ClientSettings['handOff'] = { local: LOCAL_MS, maxTime: 60_000 },
  more: ClientSettings = {},
): Promise<Bench> {
  const { proxy, url } = await openProxy();
  const client = await openClient({ url, handOff, ...more });
  const name = freshName();
  return { proxy, client, lock: client.getLock(name), name };
}

/** Waiting calls, in this order, and their holds. */
export async function inLine<T>(client: LockClient, calls: readonly (() => Promise<T>)[]): Promise<Promise<T>[]> {
  let waiting = 0;
  client.events.on('waiting', () => (waiting += 1));
  const results: Promise<T>[] = [];
  for (const call of calls) {
    const before = waiting;
    const result = inFlow(call);
    result.catch(() => undefined); // looked at by the test, later
    results.push(result);
    await until(() => waiting > before, 'the call waits');
  }
  return results;
}

/** A head with a pending try gets no hand-over, and a confirmed subscription causes one more try. */
export async function quiet({ client, name }: Pick<Bench, 'client' | 'name'>): Promise<void> {
  await until(async () => {
    const [channel] = (await admin().pubsub('CHANNELS', `*${name}*`)) as string[];
    return channel !== undefined;
  }, 'the client listens');
  await answered(client);
  await answered(client);
}

/** The scripts of the plain lock that the client sends while `work` runs. */
export async function sent({ proxy }: Bench, work: () => Promise<unknown>): Promise<string[]> {
  const before = proxy.log.length;
  await work();
  return proxy.log.slice(before).flatMap(({ name, args }) => (name === 'EVALSHA' ? (NAMES[args[0]!] ?? []) : []));
}

export const times = <T>(count: number, call: () => Promise<T>): (() => Promise<T>)[] =>
  Array.from({ length: count }, () => call);

/** What passes from one hold to the next. */
export async function passes(on: Bench, hold: Hold, next: Promise<Hold>): Promise<string[]> {
  return sent(on, async () => {
    await hold.release();
    await next;
  });
}
