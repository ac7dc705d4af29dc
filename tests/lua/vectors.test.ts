import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { expectNothingLeft, freshName } from '../support/redis.js';
import { replayCalls } from './vectors/client-replay.js';
import type { Deviation } from './vectors/comparison.js';
import { recordedScenarios } from './vectors/recording.js';
import { replayScripts } from './vectors/script-replay.js';

/*
 * Redisson 4.7.0 against a real server, recorded step by step; the same steps with our scripts, and with our client.
 * Replies, results, keys, types, fields, values and messages are compared exactly, times within the recording's
 * tolerance. How many commands it took is not compared: we send no latch, no DEL of it, and ask nothing about a hold
 * that the caller is not inside of.
 */

const OWN_LEASE = 'the lease belongs to the hold: a partial release sets the TTL to what the others have left';
const NEVER_SHORTER = 'a nested acquire never shortens the lease of the holds around it';
const RENEWAL_NEVER_SHORTER = 'a renewal never shortens a lease';
const LOST = 'a hold that was lost is told apart from one that never was';

const DEVIATIONS: readonly Deviation[] = [
  { scenario: 'watchdog-nested', steps: [5], why: OWN_LEASE, leaseEnd: { lk: { after: 2, ms: 30_000 } } },
  { scenario: 'watchdog-nested', steps: [6], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  { scenario: 'trylock-free', steps: [3], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  { scenario: 'leases-nested', steps: [2, 3], why: NEVER_SHORTER, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  { scenario: 'leases-nested', steps: [4, 5], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  { scenario: 'force', steps: [6], in: 'client', why: LOST, code: 'ERR_LOCK_LOST' },
  {
    scenario: 'force',
    steps: [7],
    in: 'client',
    why: 'inside a lost hold nothing is acquired until it is given back, and this thread had two',
    unlocksFirst: true,
  },
  {
    scenario: 'expiry',
    steps: [2],
    in: 'client',
    why: 'a tenure whose last deadline passes is given back at once, a little before the lease ends by itself',
    published: [{ channel: 'redisson_lock__channel:{lk}', payload: '0' }],
  },
  { scenario: 'expiry', steps: [8], in: 'client', why: LOST, code: 'ERR_LOCK_LOST' },
  {
    scenario: 'watchdog-after-lease',
    steps: [2],
    in: 'client',
    why: `a hold without a lease has the watchdog's, not that of the hold around it; ${NEVER_SHORTER}`,
    leaseEnd: { lk: { after: 1, ms: 9_000 } },
  },
  {
    scenario: 'watchdog-after-lease',
    steps: [3],
    in: 'scripts',
    why: RENEWAL_NEVER_SHORTER,
    leaseEnd: { lk: { after: 2, ms: 9_000 } },
  },
  {
    scenario: 'watchdog-after-lease',
    steps: [3],
    in: 'client',
    why: RENEWAL_NEVER_SHORTER,
    leaseEnd: { lk: { after: 1, ms: 9_000 } },
  },
  { scenario: 'watchdog-after-lease', steps: [4, 5], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 9_000 } } },
  { scenario: 'renewal-batch', steps: [10], in: 'scripts', why: OWN_LEASE, leaseEnd: { l3: { after: 8, ms: 3_000 } } },
  {
    scenario: 'renewal-batch',
    steps: [10],
    in: 'client',
    why: `${OWN_LEASE}: since the last tick`,
    leaseEnd: { l3: { after: 1, ms: 2_000 + 3_000 } },
  },
  { scenario: 'async', steps: [2, 3, 4, 5, 6, 7], why: NEVER_SHORTER, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  { scenario: 'async', steps: [12, 13], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  { scenario: 'async-rest', steps: [2], why: NEVER_SHORTER, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  {
    scenario: 'async-rest',
    steps: [3, 4, 5, 6],
    in: 'scripts',
    why: `${NEVER_SHORTER}; ${OWN_LEASE}`,
    leaseEnd: { lk: { after: 1, ms: 30_000 } },
  },
  {
    scenario: 'async-rest',
    steps: [3, 4, 5, 6],
    in: 'client',
    why: `a hold without a lease has the watchdog's; ${NEVER_SHORTER}; ${OWN_LEASE}`,
    leaseEnd: { lk: { after: 3, ms: 30_000 } },
  },
  { scenario: 'async-rest', steps: [7, 8], why: OWN_LEASE, leaseEnd: { lk: { after: 1, ms: 30_000 } } },
  {
    scenario: 'renewal-dead-thread',
    steps: [5],
    in: 'client',
    why: 'a dead thread does not keep the watchdog from the hold that lives',
    leaseEnd: { lk: { after: 1, ms: 1_000 + 3_000 } },
  },
  {
    scenario: 'renewal-dead-thread',
    steps: [6],
    in: 'client',
    why: 'a dead thread does not keep the watchdog from the hold that lives',
    leaseEnd: { lk: { after: 1, ms: 2_000 + 3_000 } },
  },
];

/** Scenarios that cannot be replayed, and why. */
const NOT_REPLAYED: Readonly<Record<string, string>> = {};

const recorded = recordedScenarios('lock');
const replayed = recorded.filter(({ name }) => !(name in NOT_REPLAYED));
const REPLAYS = { scripts: replayScripts, client: replayCalls };

// Most of the time is recorded pauses: several at once take little longer than the longest one.
const SIDE_BY_SIDE = 8;
const differences = new Map<string, string[] | Error>();
beforeAll(async () => {
  const longestFirst = [...replayed].sort((a, b) => b.steps.at(-1)!.stateAt - a.steps.at(-1)!.stateAt);
  const jobs = longestFirst.flatMap((scenario) =>
    Object.entries(REPLAYS).map(([label, replay]) => ({ scenario, label, replay })),
  );
  const work = async (): Promise<void> => {
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      const { scenario, label, replay } = job;
      const found = await replay(scenario, DEVIATIONS, freshName(scenario.name)).catch(
        (error: unknown) => error as Error,
      );
      differences.set(`${label} ${scenario.name}`, found);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
});

afterEach(() => expectNothingLeft());

test('every recorded scenario is replayed or named with its reason, and every deviation has its scenario and step', () => {
  expect(recorded).toHaveLength(20);
  const names = recorded.map(({ name }) => name);
  expect(Object.keys(NOT_REPLAYED).filter((name) => !names.includes(name))).toEqual([]);
  const steps = recorded.flatMap(({ name, steps }) => steps.map(({ i }) => `${name} ${i}`));
  const deviating = DEVIATIONS.flatMap(({ scenario, steps }) => steps.map((i) => `${scenario} ${i}`));
  expect(deviating.filter((step) => !steps.includes(step))).toEqual([]);
});

describe.each(Object.keys(REPLAYS))('with our %s', (label) => {
  test.each(replayed.map(({ name, note }) => [name, note]))('%s: %s', (name) => {
    expect(differences.get(`${label} ${name}`)).toEqual([]);
  });
});
