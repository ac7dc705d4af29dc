import { describe, expect, test } from '@jest/globals';
import { LeaseClock } from '../../src/clock.js';
import type { RenewalItem, RenewalScript } from '../../src/protocols/lock-protocol.js';
import type { Tenure } from '../../src/holding/tenure.js';
import { Watchdog } from '../../src/holding/watchdog.js';
import { FakeClock } from '../support/time/fake-clock.js';
import { until } from '../support/time/until.js';

const EVERY_MS = 10_000;
const silent = { report: () => undefined };

/** Renewals that are noted, with the turn of the event loop in which they left, and never answered. */
class Unanswered implements RenewalScript {
  readonly sent: { turn: number; keys: string[] }[] = [];
  turn = 0;

  groupOf(): string {
    return 'one server';
  }

  renew(items: readonly RenewalItem[]): ReturnType<RenewalScript['renew']> {
    this.sent.push({ turn: this.turn, keys: items.map(({ key }) => key) });
    const request: Pick<ReturnType<RenewalScript['renew']>, 'done'> = { done: new Promise(() => undefined) };
    return request as unknown as ReturnType<RenewalScript['renew']>;
  }
}

const heldTenure = (key: string, renewal: RenewalScript, now: number, leaseMs = 3 * EVERY_MS): Tenure =>
  ({
    protocol: { renewal, name: key },
    state: 'held',
    holds: [],
    lease: {
      renewedAt: now,
      shortestRenewed: leaseMs,
      deadline: Infinity,
      renewalItem: () => ({ key, owner: 'owner', leaseMs }),
      takeRenewalTicket: () => ({ partials: 0, confirms: true, jumped: 0 }),
    },
  }) as unknown as Tenure;

test('the renewals of many locks are sent over several turns of the event loop without waiting for replies', async () => {
  const clock = new FakeClock();
  const leaseClock = new LeaseClock(clock);
  const watchdog = new Watchdog(leaseClock, silent);
  const renewal = new Unanswered();
  const keys = Array.from({ length: 2_150 }, (_, i) => `lock ${i}`);
  for (const key of keys) watchdog.add(heldTenure(key, renewal, leaseClock.now()));
  let counting = true;
  const count = (): void => {
    renewal.turn += 1;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  clock.advanceSync(EVERY_MS);
  await until(() => renewal.sent.length === 22, 'all batches are sent');
  counting = false;
  const perTurn = new Map<number, number>();
  for (const { turn } of renewal.sent) perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1);
  expect([...perTurn.values()]).toEqual([8, 8, 6]);
  expect(renewal.sent.flatMap(({ keys: sent }) => sent)).toEqual(keys);
  watchdog.close();
});

test('a lock that is released while earlier batches are sent is not renewed', async () => {
  const clock = new FakeClock();
  const leaseClock = new LeaseClock(clock);
  const watchdog = new Watchdog(leaseClock, silent);
  const renewal = new Unanswered();
  const tenures = Array.from({ length: 1_000 }, (_, i) => heldTenure(`lock ${i}`, renewal, leaseClock.now()));
  for (const tenure of tenures) watchdog.add(tenure);
  clock.advanceSync(EVERY_MS);
  tenures[999]!.state = 'over';
  await until(() => renewal.sent.length === 10, 'all batches are sent');
  expect(renewal.sent.at(-1)!.keys).toHaveLength(99);
  watchdog.close();
});

describe('locks with different leases', () => {
  /** The locks of each renewal, after so many steps of a second. */
  async function renewals(leasesMs: readonly number[], seconds: number): Promise<string[]> {
    const clock = new FakeClock();
    const leaseClock = new LeaseClock(clock);
    const watchdog = new Watchdog(leaseClock, silent);
    const renewal = new Unanswered();
    for (const leaseMs of leasesMs)
      watchdog.add(heldTenure(`${leaseMs / 1_000} s`, renewal, leaseClock.now(), leaseMs));
    for (renewal.turn = 1; renewal.turn <= seconds; renewal.turn += 1) await clock.advance(1_000);
    watchdog.close();
    return renewal.sent.map(({ turn, keys }) => `${turn}: ${keys.join(', ')}`);
  }

  test('each lock is renewed every third of its own lease', async () => {
    expect(await renewals([30_000, 9_000], 10)).toEqual(['3: 9 s', '6: 9 s', '9: 9 s', '10: 30 s']);
  });

  test('leases that differ by less than a third are renewed together', async () => {
    expect(await renewals([12_000, 9_000, 30_000], 10)).toEqual([
      '3: 12 s, 9 s',
      '6: 12 s, 9 s',
      '9: 12 s, 9 s',
      '10: 30 s',
    ]);
  });

  test('a lock with a shorter lease that comes later does not wait for the tick of the longer one', async () => {
    expect(await renewals([30_000, 3_000], 2)).toEqual(['1: 3 s', '2: 3 s']);
  });
});
