import { doctor as examine, type Finding } from '../index.js';
import { EXIT, type Session } from './session.js';
import { shown } from './words.js';

const STYLES = { ok: 'green', note: 'blue', warning: 'yellow', error: 'red' } as const satisfies Record<
  Finding['level'],
  string
>;

/** `holdfast doctor`. Exits with 1 if it finds an error. */
export async function doctor({ client, terminal }: Session): Promise<number> {
  const findings = await examine(client);
  let server: string | undefined = '';
  for (const found of findings) {
    if (terminal.json) {
      await terminal.object(found);
      continue;
    }
    if (found.server !== server) await terminal.lines(terminal.style('bold', shown(found.server ?? 'permissions')));
    server = found.server;
    const level = terminal.style(STYLES[found.level], found.level.padEnd(7));
    await terminal.lines(`  ${level}  ${found.check.padEnd(11)}  ${shown(found.message)}`);
    if (found.advice !== undefined) await terminal.lines(`${' '.repeat(24)}${shown(found.advice)}`);
  }
  return findings.some(({ level }) => level === 'error') ? EXIT.no : EXIT.ok;
}
