import { expect, test } from '@jest/globals';
import { MACHINES, playMachine } from './machines.js';

const SCHEDULES = 500;

test.each(MACHINES.map((machine) => [machine.name, machine] as const))(
  'every invariant holds in random schedules of %s',
  async (_, machine) => {
    const granted = await playMachine(machine, SCHEDULES, Number(process.env['HOLDFAST_SEED']) | 0);
    // Schedules without any grant would prove nothing.
    expect(granted).toBeGreaterThan(SCHEDULES / 2);
  },
);
