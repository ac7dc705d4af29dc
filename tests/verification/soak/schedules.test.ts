import { expect, test } from '@jest/globals';
import { MACHINES, playMachine } from '../properties/machines.js';

const SCHEDULES = 100_000 / MACHINES.length;

test.each(MACHINES.map((machine) => [machine.name, machine] as const))(
  `every invariant holds in ${SCHEDULES} random schedules of %s`,
  async (_, machine) => {
    expect(await playMachine(machine, SCHEDULES, Number(process.env['HOLDFAST_SEED']) | 0)).toBeGreaterThan(
      SCHEDULES / 2,
    );
  },
);
