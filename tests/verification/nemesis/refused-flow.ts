import type { LockClient } from 'holdfast';
import type { Random } from '../../support/random.js';
import { codeOf, type Load } from './load.js';

/** A key of the user's own, of a type that no lock has; and one that an ACL forbids. */
export const WRONG_TYPE = 'wrong:type';
const FORBIDDEN = 'denied:key';
/** All but what begins like the one that is forbidden: patterns only allow. */
export const ALLOWED_KEYS = ['~[^d]*', '~d[^e]*'];
export const isRefused = (key: string): boolean => key.includes(WRONG_TYPE) || key.includes(FORBIDDEN);

const HOUR_MS = 3_600_000;

/** With a lease of an hour: what may have run would be taken back for as long. */
const CALLS: readonly ((client: LockClient, name: string) => Promise<unknown>)[] = [
  (client, name) => client.getLock(name).tryLock(0, HOUR_MS),
  (client, name) => client.getLock(name).tryLock(HOUR_MS, HOUR_MS),
  (client, name) => client.getNonReentrantLock(name).tryLock(0, HOUR_MS),
  (client, name) => client.getFairLock(name).tryLock(HOUR_MS, HOUR_MS),
  (client, name) => client.getFencedLock(name).tryLock(0, HOUR_MS),
  (client, name) => client.getSpinLock(name).tryLock(0, HOUR_MS),
  (client, name) => client.getReadWriteLock(name).readLock().tryLock(0, HOUR_MS),
  (client, name) => client.getReadWriteLock(name).writeLock().tryLock(0, HOUR_MS),
  (client, name) => client.getMultiLock(name, ['a']).tryLock(0, HOUR_MS),
  (client, name) => client.getSemaphore(name).tryAcquire(),
  (client, name) => client.getSemaphore(name).drainPermits(),
  (client, name) => client.getPermitExpirableSemaphore(name).tryAcquire(0, HOUR_MS),
];

/** A call that Redis refuses, whatever else goes wrong. The bench looks for what comes after it. */
export async function beRefused(load: Load, random: Random): Promise<void> {
  const name = random.pick([WRONG_TYPE, FORBIDDEN]);
  const call = random.pick(CALLS);
  try {
    const got = await call(load.clients.first, name);
    load.recorder.write({ type: 'wrong', what: `${name} gave ${String(got)} to ${String(call)}` });
  } catch (error) {
    load.count(load.refused, `refused ${codeOf(error)}`);
  }
}
