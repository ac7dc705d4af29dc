import { ALL_SCRIPTS } from '../../support/lua/lock-scripts.js';

/** The script that a server runs, and its client. */
export interface RunningScript {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** The script of a command in the MONITOR output. `undefined`: no script of Holdfast. */
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
