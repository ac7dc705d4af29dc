import { setTimeout as sleep } from 'node:timers/promises';
import { RedisUnavailableError } from '../index.js';
import { changesBetween, type Change } from '../integrations/shared/changes.js';
import { numberOption } from './arguments.js';
import { describe } from './inspect.js';
import { EXIT, type Session } from './session.js';
import { changeText, shown } from './words.js';

const STYLES = {
  acquired: 'green',
  'handed over': 'cyan',
  released: 'blue',
  expired: 'red',
  'hold count': 'dim',
  waiters: 'yellow',
  value: 'yellow',
} as const satisfies Record<Change['what'], string>;

/**
 * `holdfast watch <name>`. It looks at the name again and again. A subscription would tell of releases at once, but the
 * holders would take the watcher for a client that waits.
 */
export async function watch({ args, client, terminal, signal }: Session): Promise<number> {
  const intervalMs = 1_000 * numberOption(args, 'interval', 0.25, 0.01);
  const name = args.operand as string;
  let before = await client.inspect(name, { processes: true });
  let lookedAt = performance.now();
  if (terminal.json) await terminal.object({ at: new Date().toISOString(), what: 'now', ...before });
  else await terminal.lines(...describe(before), '');
  while (!signal.aborted) {
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) break;
    const after = await client.inspect(name, { processes: true }).catch((error: unknown) => {
      if (error instanceof RedisUnavailableError) return undefined;
      throw error;
    });
    const at = new Date().toISOString();
    if (after === undefined) {
      if (terminal.json) await terminal.object({ at, what: 'unavailable' });
      else await terminal.lines(`${at.slice(11, 23)}  ${terminal.style('red', 'Redis is unavailable')}`);
      continue;
    }
    const now = performance.now();
    for (const change of changesBetween(before, after, now - lookedAt)) {
      const [what, text] = [change.what, changeText(change, after)];
      if (terminal.json) await terminal.object({ at, what, text, ...after });
      else
        await terminal.lines(`${at.slice(11, 23)}  ${terminal.style(STYLES[what], what.padEnd(11))}  ${shown(text)}`);
    }
    [before, lookedAt] = [after, now];
  }
  return EXIT.interrupted;
}
