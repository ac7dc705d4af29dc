import { ALL_SCRIPTS } from '../../support/lua/lock-scripts.js';

/** Which script a server runs for whom. */
export interface RunningScript {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** What a command that MONITOR tells of runs; undefined: none of ours. */
export function runningScript(
  command: string,
  [script = '', keyCount = '0', ...rest]: readonly string[],
): RunningScript | undefined {
  if (command !== 'EVALSHA' && command !== 'EVAL') return undefined;
  const name = SCRIPT_NAMES.get(script);
  if (name === undefined) return undefined;
  const count = Number(keyCount);
  return { script: name, keys: rest.slice(0, count), args: rest.slice(count) };
}

const SCRIPT_NAMES: ReadonlyMap<string, string> = new Map(
  [...ALL_SCRIPTS].flatMap(([name, { sha, source }]) => [
    [sha, name],
    [source, name],
  ]),
);
