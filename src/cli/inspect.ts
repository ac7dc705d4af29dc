import type { ListEntry } from '../index.js';
import { EXIT, type Session } from './session.js';
import { duration, KIND_NAMES } from '../integrations/shared/inspection-words.js';
import { leaseText, processText, shown, waitersText } from './words.js';

/** `holdfast inspect <name>`. Exits with 1 if nothing is locked under the name. */
export async function inspect({ args, client, terminal }: Session): Promise<number> {
  const entry = await client.inspect(args.operand as string, { processes: true });
  if (terminal.json) await terminal.object(entry);
  else await terminal.lines(...describe(entry));
  return entry.kind === 'free' || entry.kind === 'unknown' ? EXIT.no : EXIT.ok;
}

/** What is known of one name, as lines. */
export function describe(entry: ListEntry): string[] {
  const line = (label: string, text: string): string => `${label.padEnd(9)} ${text}`;
  const lines = [line('name', shown(entry.name)), line('kind', KIND_NAMES[entry.kind])];
  if (entry.kind === 'unknown') lines.push(line('type', shown(entry.type)));
  if (entry.kind === 'free' || entry.kind === 'unknown') return lines;
  for (const { owner, process, holdCount, mode } of entry.owners) {
    const holds = `${holdCount} ${holdCount === 1 ? 'hold' : 'holds'}${mode === 'exclusive' ? '' : ` (${mode})`}`;
    lines.push(line('owner', `${shown(owner)}, ${holds}`));
    lines.push(
      process === undefined
        ? line('', 'process unknown: a JVM, a process that is not connected, or Redis does not tell')
        : line('', `${processText(process)} at ${shown(process.address)}`),
    );
  }
  if (entry.value !== undefined) lines.push(line('value', shown(entry.value)));
  for (const { id, remaining } of entry.permits) {
    lines.push(line('permit', `${shown(id)}, ${remaining === -1 ? 'no lease' : `${duration(remaining)} left`}`));
  }
  lines.push(line('lease', leaseText(entry.remaining)), line('waiters', waitersText(entry)));
  for (const [at, owner] of entry.queue.entries()) lines.push(line('', `${at + 1}. ${shown(owner)}`));
  return lines;
}
