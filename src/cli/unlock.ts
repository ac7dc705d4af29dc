import { createInterface } from 'node:readline/promises';
import { RedisUnavailableError } from '../index.js';
import { UsageError } from './arguments.js';
import { describe } from './inspect.js';
import { EXIT, type Session } from './session.js';
import { ownerText, userText } from './words.js';

/** `holdfast unlock <name>`. Exits with 1 if the owner no longer has the lock, or the user does not confirm. */
export async function unlock({ args, client, terminal, signal }: Session): Promise<number> {
  const name = args.operand as string;
  const confirmed = args.flags.has('yes');
  if (confirmed && args.text.owner === undefined) {
    throw new UsageError('--yes needs --owner: name the owner that may lose the lock, as inspect shows it');
  }
  if (!confirmed && (terminal.json || !process.stdin.isTTY)) {
    throw new UsageError('unlock asks a question, which needs a terminal; without one, use --yes --owner <owner id>');
  }
  const entry = await client.inspect(name, { processes: true });
  const candidates = entry.owners.filter(({ owner }) => args.text.owner === undefined || owner === args.text.owner);
  const say = (freed: boolean, text: string): Promise<void> =>
    terminal.json ? terminal.object({ name, owner: args.text.owner, freed }) : terminal.lines(text);
  if (!terminal.json && !confirmed) await terminal.lines(...describe(entry), '');
  const [owner, ...others] = candidates;
  if (owner === undefined) {
    await say(
      false,
      args.text.owner === undefined ? 'nothing is locked under this name' : 'this owner does not have the lock',
    );
    return EXIT.no;
  }
  // An owner of both halves of a read-write lock is listed twice.
  if (others.some((other) => other.owner !== owner.owner))
    throw new UsageError('the lock has several owners; name one of them with --owner <owner id>');
  if (!confirmed) {
    await terminal.lines(
      `This takes the lock from ${ownerText(owner)}. Its code may still run, beside the next owner:`,
      'it learns of the loss at its next renewal or release. Stop the process first if you can.',
    );
    if ((await ask('Type the name of the lock to free it: ', signal)) !== name) {
      await terminal.lines('not freed: this is not the name');
      return EXIT.no;
    }
  }
  const freed = await client.forceUnlock(name, { ifOwner: owner.owner, by: userText() }).catch((cause: unknown) => {
    if (!(cause instanceof RedisUnavailableError) || cause.outcome !== 'unknown') throw cause;
    const message = `the lock may be free or not: inspect it before you try again: ${cause.message}`;
    throw new RedisUnavailableError(message, 'unknown', { cause });
  });
  await say(freed, freed ? 'freed' : 'not freed: this owner no longer has the lock');
  return freed ? EXIT.ok : EXIT.no;
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  // On a terminal, readline gets Ctrl-C instead of the process.
  lines.on('SIGINT', () => process.emit('SIGINT'));
  // Ctrl-D ends the input without an answer.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question, { signal }), ended]);
  } finally {
    lines.close();
  }
}
