import { readFileSync } from 'node:fs';
import { LockError, RedisUnavailableError, RefusedError } from '../index.js';
import { visible } from '../integrations/shared/inspection-words.js';
import { readArguments, type Arguments, type CommandName, UsageError } from './arguments.js';
import { connect } from './connect.js';
import { doctor } from './doctor.js';
import { explain } from './explain.js';
import { HELP } from './help.js';
import { inspect } from './inspect.js';
import { ls } from './ls.js';
import { EXIT, type Session } from './session.js';
import { Terminal } from './terminal.js';
import { top } from './top.js';
import { unlock } from './unlock.js';
import { watch } from './watch.js';

/** `explain` is the only command that needs no Redis. */
type SessionCommand = Exclude<CommandName, 'explain'>;

const COMMANDS: Readonly<Record<SessionCommand, (session: Session) => Promise<number>>> = {
  ls,
  inspect,
  watch,
  top,
  unlock,
  doctor,
  // The page is the largest part of the command.
  ui: async (session) => (await import('./ui.js')).ui(session),
};

/** What ends a command: Ctrl-C, a supervisor, and a terminal that closes. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs one command and resolves with its exit code. */
export async function run(given: readonly string[]): Promise<number> {
  // The reader of a pipe may end first, such as `head`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.no);
  });
  try {
    const args = readArguments(given);
    if (args.command === 'version') return await print(version());
    if (args.command === 'help') return await print(HELP);
    if (args.command === 'explain') return await print(explain(args.operand ?? ''));
    return await runCommand(args, args.command);
  } catch (error) {
    return failed(error);
  }
}

async function runCommand(args: Arguments, command: SessionCommand): Promise<number> {
  const terminal = new Terminal(args.flags.has('json'));
  const client = connect(args, process.env);
  const abort = new AbortController();
  const interrupt = (): void => abort.abort();
  for (const signal of SIGNALS) process.once(signal, interrupt);
  let connectionError: unknown;
  client.events.on('connectionError', ({ cause }) => (connectionError = cause));
  try {
    return await COMMANDS[command]({ args, client, terminal, signal: abort.signal });
  } catch (error) {
    if (abort.signal.aborted) return EXIT.interrupted;
    const isSaid = connectionError instanceof Error && (error as Error).message.includes(connectionError.message);
    if (error instanceof RedisUnavailableError && connectionError instanceof Error && !isSaid) {
      throw new RedisUnavailableError(`${error.message} (${connectionError.message})`, 'none', { cause: error });
    }
    throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    await client.close();
  }
}

async function print(text: string): Promise<number> {
  await new Terminal(false).lines(text);
  return EXIT.ok;
}

const version = (): string =>
  (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version;

function failed(error: unknown): number {
  if (!(error instanceof UsageError || error instanceof LockError)) throw error;
  process.stderr.write(`holdfast: ${visible(error.message)}\n`);
  if (error instanceof RedisUnavailableError || error instanceof RefusedError) return EXIT.redis;
  return EXIT.usage;
}
