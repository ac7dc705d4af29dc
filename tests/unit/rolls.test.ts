import { expect, test } from '@jest/globals';
import { RedisUnavailableError, RefusedError } from '../../src/errors.js';
import { Rolls } from '../../src/redis/requests/rolls.js';
import type { WakeReply } from '../../src/redis/scripts/replies.js';
import { ROLL_REFUSED_MS } from '../../src/timing.js';
import { FakeClock } from '../support/time/fake-clock.js';

type Outcome = { readonly reply: WakeReply } | { readonly error: Error };

/** Rolls whose requests end as given, in this order. */
function rollsThat(...outcomes: Outcome[]) {
  const clock = new FakeClock();
  const sent: unknown[] = [];
  const run = (...given: unknown[]) => {
    sent.push(given.slice(1));
    return { done: Promise.resolve(outcomes.shift() ?? { reply: 'woken' }) };
  };
  const rolls = new Rolls({ run } as unknown as ConstructorParameters<typeof Rolls>[0], clock);
  const wake = async (waiters = 'roll'): Promise<void> => {
    rolls.wake('lock', { waiters, own: 'own:', most: 2 });
    await rolls.whenDone();
  };
  return { clock, sent, wake };
}

const ONE = [['roll'], ['lock', expect.any(String), 'own:', 2]];

test('a request names the roll as its key, and the lock as an argument', async () => {
  const { sent, wake } = rollsThat();
  await wake();
  expect(sent).toEqual([ONE]);
});

test('a roll that may be at the other node of a migrating slot gets one request more', async () => {
  const { sent, wake } = rollsThat({ reply: 'elsewhere' }, { reply: 'elsewhere' });
  await wake();
  expect(sent).toEqual([ONE, ONE]);
  await wake();
  expect(sent).toHaveLength(3);
});

test.each([
  ['the reply of the script', { reply: 'refused' }],
  ['a missing permission', { error: new RefusedError('NOPERM', undefined) }],
] as const)('a roll that Redis refuses gets no request for a minute: %s', async (_, outcome) => {
  const { clock, sent, wake } = rollsThat(outcome);
  await wake();
  clock.advanceSync(ROLL_REFUSED_MS - 1);
  await wake();
  expect(sent).toHaveLength(1);
  await wake('another');
  expect(sent).toHaveLength(2);
  clock.advanceSync(2);
  await wake();
  expect(sent).toHaveLength(3);
});

test('a request without a reply does not keep later ones from being sent', async () => {
  const { sent, wake } = rollsThat({ error: new RedisUnavailableError('no reply', 'unknown') });
  await wake();
  await wake();
  expect(sent).toHaveLength(2);
});
