import { expect, test } from '@jest/globals';
import { withTimeOf } from './fake-time.js';
import { CALM, type Weather } from './fake-network.js';
import { World, type Step } from './world.js';

/*
 * Schedules that once broke an invariant, reduced to the minimum. Random schedules seldom contain them.
 */

const HOUR = 3_600_000;
const SILENT: Weather = { ...CALM, loseRequest: 100 };
const acquire = (lease?: number, wait = 0): Step => ({ do: 'acquire', client: 0, lock: 0, wait, lease });
const nest = (wait = 0): Step => ({ do: 'nest', hold: 0, wait, lease: undefined });
const release: Step = { do: 'release', hold: 0 };
const pass = (ms: number): Step => ({ do: 'pass', ms });
const jump = (ms: number): Step => ({ do: 'jump', ms });
const away: Step = { do: 'away', client: 0, ms: 700 };

const schedules: Readonly<Record<string, readonly Step[]>> = {
  'R11: a doubt after a clock jump, with Redis unavailable, ends no later than the lease': [
    jump(60),
    acquire(),
    away,
    pass(700),
  ],
  'R15: a confirmation beside a partial release that was sent after a clock jump moves no deadline': [
    acquire(),
    pass(30),
    nest(),
    release,
    jump(60),
    pass(30),
    { do: 'block', ms: 30 },
    pass(30),
  ],
  'R11: an unconfirmed lease that Redis cannot confirm is lost when it ends by any clock': [
    { do: 'acquire', client: 1, lock: 0, wait: 0, lease: 60 },
    pass(4),
    { do: 'away', client: 1, ms: 700 },
    jump(60),
    { do: 'extend', hold: 0, lease: 50 },
    acquire(),
    acquire(),
  ],
  'R15: a confirmation between two jumps beside a partial release moves no deadline': [
    acquire(),
    pass(4),
    { do: 'extend', hold: 0, lease: 50 },
    pass(1),
    nest(),
    pass(7),
    { do: 'release', hold: 3 },
    jump(60),
    pass(30),
    jump(60),
    release,
  ],
  'R2: a compensation continues for as long as Redis keeps the lease, regardless of the local clock': [
    acquire(20_000),
    pass(30),
    away,
    jump(HOUR),
  ],
  'R12: a lock acquired after a clock jump is renewed, although an earlier timer was set far ahead': [
    acquire(20_000),
    pass(700),
    jump(HOUR),
    nest(Infinity),
    release,
    pass(700),
  ],
  'R11: the deadline of a lock acquired after a clock jump is watched beside an earlier one': [
    acquire(),
    pass(700),
    release,
    jump(HOUR),
    acquire(60, 30),
    pass(64),
    release,
  ],
  'R1: the lease of a repeated hand-over counts from the first attempt': [
    acquire(300),
    pass(100),
    acquire(250, 3_000),
    pass(30),
    { do: 'weather', client: 0, weather: { ...CALM, loseReply: 60 } },
    release,
    pass(300),
  ],
  'R2: a force unlock of unknown outcome leaves nothing of the hold that it ended': [
    acquire(20_000),
    pass(700),
    { do: 'force', client: 0, lock: 0 },
    { do: 'weather', client: 0, weather: SILENT },
    pass(700),
    pass(30),
  ],
  'R3: a call behind an unsettled doubt takes one command deadline in total': [
    acquire(),
    away,
    jump(60),
    pass(4),
    nest(),
    nest(),
    { do: 'extend', hold: 0, lease: 50 },
  ],
  'R2: a late hand-over to an aborted call changes nothing': [
    acquire(),
    acquire(undefined, Infinity),
    pass(30),
    release,
    { do: 'weather', client: 0, weather: { ...CALM, late: 100 } },
    { do: 'abort', call: 0 },
    pass(700),
  ],
  'R17: a waiter of another client learns of a shorter lease after a longer one': [
    { do: 'acquire', client: 1, lock: 0, wait: 0, lease: 20_000 },
    pass(700),
    acquire(undefined, Infinity),
    { do: 'weather', client: 1, weather: { ...CALM, loseReply: 20 } },
    { do: 'acquire', client: 1, lock: 0, wait: 400, lease: 60 },
    release,
  ],
};

test.each(Object.entries(schedules))('%s', async (_, steps) => {
  for (let luck = 0; luck < 50; luck++) {
    const world = new World(luck, 1);
    const restore = withTimeOf(world.clock);
    try {
      await world.play(steps);
    } finally {
      restore();
    }
    expect(world.granted).toBeGreaterThan(0);
  }
});
