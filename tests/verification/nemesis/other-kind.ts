import type { Lock, LockClient } from 'holdfast';
import { setImmediate } from 'node:timers/promises';
import type { Random } from '../../support/random.js';
import type { Inside } from './call.js';
import { isExclusive, isShared, keyOf, kindOf, redisName } from './kinds.js';
import { codeOf, type Load } from './load.js';

/** Lasts longer than a lease that ends just now. */
const SURELY_HELD_MS = 100;
const LONG_MS = 60_000;

/** By families: a call for one inside a hold of another would wait for its own flow. */
const FAMILIES: Readonly<Record<string, readonly ((client: LockClient, key: string, options: object) => Lock)[]>> = {
  exclusive: [
    (client, key, options) => client.getLock(key, options),
    (client, key, options) => client.getFairLock(key, options),
    (client, key, options) => client.getNonReentrantLock(key, options),
    (client, key, options) => client.getSpinLock(key, options),
    (client, key, options) => client.getFencedLock(key, options),
  ],
  readwrite: [
    (client, key, options) => client.getReadWriteLock(key, options).readLock(),
    (client, key, options) => client.getReadWriteLock(key, options).writeLock(),
  ],
  group: [(client, key, options) => client.getMultiLock(key, ['a', 'e'], options)],
};
const familyOf = (name: string): string => (isExclusive(name) ? 'exclusive' : (kindOf(name) ?? ''));

const WAYS: readonly ((lock: Lock) => Promise<unknown>)[] = [
  (lock) => lock.lock(),
  (lock) => lock.tryLock(0),
  (lock) => lock.tryLock(LONG_MS, LONG_MS),
  (lock) => lock.acquire(),
  (lock) => lock.tryAcquire({ waitTime: LONG_MS }),
  (lock) => lock.withLock(() => undefined),
];

/** A request for the same name as another kind inside a hold is refused at once, and nothing is lost. */
export async function askForOtherKind(load: Load, random: Random, { target, hold, context }: Inside): Promise<void> {
  const { name } = random.pick(target.parts);
  if (!isExclusive(name) && !isShared(name)) return;
  const others = Object.keys(FAMILIES).filter((family) => family !== familyOf(name));
  const key = redisName(keyOf(name));
  const lock = random.pick(FAMILIES[random.pick(others)]!)(load.clients.of(name), key, context ? { context } : {});
  const way = random.pick(WAYS);
  if (hold.signal.aborted || hold.validFor() < SURELY_HELD_MS) return;
  let outcome = 'no answer at once';
  const asked = way(lock).then(
    () => (outcome = 'granted'),
    (error: unknown) => (outcome = codeOf(error)),
  );
  // Nothing is sent for it.
  await setImmediate();
  const wrong = (what: string): void =>
    load.recorder.write({ type: 'wrong', what: `${name} requested as another kind by ${String(way)}: ${what}` });
  if (outcome !== 'ERR_LOCK_UPGRADE') wrong(outcome);
  else if (hold.signal.aborted && hold.validFor() > 0) wrong('the hold was lost');
  load.count(load.refused, `other kind ${outcome}`);
  if (outcome === 'no answer at once') await asked;
}
