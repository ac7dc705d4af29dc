import type { LockClient } from 'holdfast';
import type { Random } from '../../support/random.js';
import type { WorkerParts } from '../../support/processes/worker-orders.js';
import { codeOf, type Load } from './load.js';

/** A key of the user's own, of a type that no lock has; and one that an ACL forbids. */
export const WRONG_TYPE = 'wrong:type';
const FORBIDDEN = 'denied:key';
/** Allows all names except those with the prefix of the forbidden one, because patterns can only allow. */
export const ALLOWED_KEYS = ['~[^d]*', '~d[^e]*'];
/** The same, with requests only while no fault is active. */
export const WRONG_TYPE_AT_REST = 'wrong:type at rest';
const FORBIDDEN_AT_REST = 'denied:key at rest';
export const isRefusedAtRest = (key: string): boolean =>
  [WRONG_TYPE_AT_REST, FORBIDDEN_AT_REST].some((name) => key.includes(name));

const HOUR_MS = 3_600_000;
const REFUSED = 'ERR_LOCK_REFUSED';
/** A busy machine may keep Redis from replying in time: then a request may have run and is compensated. */
export const UNANSWERED = 'ERR_LOCK_REDIS_UNAVAILABLE';

/** With a lease of one hour: a possible grant would be compensated for as long. */
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

/** Makes each call for each key without faults, and returns the results that Redis has not refused. */
export async function run({ clients }: WorkerParts): Promise<string[]> {
  const client = clients.get('client')!;
  const names = [WRONG_TYPE_AT_REST, FORBIDDEN_AT_REST];
  const asked = names.flatMap((name) =>
    CALLS.map((call) =>
      call(client, name).then(
        (got) => `${name} gave ${String(got)} to ${String(call)}`,
        (error: unknown) => codeOf(error),
      ),
    ),
  );
  return (await Promise.all(asked)).filter((outcome) => outcome !== REFUSED);
}

/** A call that Redis refuses, whatever else goes wrong. */
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
