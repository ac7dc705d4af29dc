import { drawBesideRedisson, drawPeers } from './charts.js';
import { drawOwnership } from './ownership.js';
import { drawSequence } from './sequence.js';
import { SEQUENCES } from './sequences.js';

/** Every picture that a script draws, by the name of its file; `performance` is the text of docs/performance.md. */
export function drawAll(performance: string): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(SEQUENCES).map(([name, sequence]): [string, string] => [`${name}.svg`, drawSequence(sequence)]),
    ['ownership.svg', drawOwnership()],
    ['peers.svg', drawPeers(performance)],
    ['beside-redisson.svg', drawBesideRedisson(performance)],
  ]);
}
