import type { ClientOptions } from 'holdfast';
import { Random } from '../../support/random.js';
import { kindOf, type Kind } from './kinds.js';

/** The options of the clients of one process that save requests (`docs/hot-locks.md`). Times in ms. */
export interface HotOptions {
  readonly local: number;
  readonly keep: number;
  readonly release: NonNullable<ClientOptions['release']>;
}

const HAND_OVERS = [
  { local: 20, keep: 0 },
  { local: 150, keep: 0 },
  { local: 400, keep: 150 },
  { local: 1_000, keep: 500 },
] as const;

/** For each process. Half of the processes have no local hand-overs, unless `hot`. The same seed gives the same options. */
export function drawHotOptions(seed: string, processes: number, hot: boolean): HotOptions[] {
  const random = new Random('hot options', seed);
  const drawn = Array.from({ length: processes }, (_, place): HotOptions => {
    const handOff = hot || place % 2 === 0 ? random.pick(HAND_OVERS) : { local: 0, keep: 0 };
    return { ...handOff, release: random.below(2) === 0 ? 'background' : 'awaited' };
  });
  // The last process is the one that is traced, and every second one has an odd connection.
  const turned = random.below(processes);
  return [...drawn.slice(turned), ...drawn.slice(0, turned)];
}

export const clientOptionsOf = ({ local, keep, release }: HotOptions): ClientOptions => ({
  release,
  ...(local > 0 && { handOff: { local, keep } }),
});

/** Kinds whose sections may follow one another without a request. */
const FOLLOWING: ReadonlySet<Kind | undefined> = new Set<Kind>(['lock', 'nonreentrant', 'readwrite']);
export const mayFollow = (name: string): boolean => FOLLOWING.has(kindOf(name));
