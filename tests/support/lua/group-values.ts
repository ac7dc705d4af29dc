import { admin } from '../redis.js';
import { valueField } from './value-field.js';

export { valueField };

const JVM = '8743c9c0-0795-4907-87fd-6c719a6b4586:52';

/** The fields of one held value in Redis. */
export const heldValue = (value: string, owner: string, count: number, ends: unknown): Record<string, unknown> => ({
  [valueField(value)]: owner,
  [`${valueField(value)}:${owner}:expire_time`]: ends,
  [`${valueField(value)}:${owner}:lock_count`]: String(count),
});

/** The clock of the server that the admin connection leads to. */
export async function serverNow(): Promise<number> {
  const [seconds, micros] = await admin().time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Writes a hold to Redis that no client of this process knows, such as one of Redisson. */
export async function holdValues(
  group: string,
  values: readonly string[],
  leaseTime: number,
  { owner = JVM, count = 1 } = {},
): Promise<void> {
  const ends = String((await serverNow()) + leaseTime);
  for (const value of values) await admin().hset(group, heldValue(value, owner, count, ends) as Record<string, string>);
  if ((await admin().pttl(group)) < leaseTime) await admin().pexpire(group, Math.max(leaseTime, 1));
}
