import type { Results } from '../../bench/results/results.js';
import { drawBesideRedisson, drawPeers } from './charts.js';
import { drawFleet, drawHotFlow, drawHotRates, drawHotWaits } from './hot-charts.js';
import { drawOwnership } from './ownership.js';
import { drawSequence } from './sequence.js';
import { SEQUENCES } from './sequences.js';

/** Every picture that a script draws, by the name of its file. */
export function drawAll(results: Results): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(SEQUENCES).map(([name, sequence]): [string, string] => [`${name}.svg`, drawSequence(sequence)]),
    ['ownership.svg', drawOwnership()],
    ['peers.svg', drawPeers(results)],
    ['beside-redisson.svg', drawBesideRedisson(results)],
    ['fleet.svg', drawFleet(results)],
    ['hot-locks-rates.svg', drawHotRates(results)],
    ['hot-locks-waits.svg', drawHotWaits(results)],
    ['hot-locks-one-flow.svg', drawHotFlow(results)],
  ]);
}
