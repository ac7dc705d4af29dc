import type { LockClient } from '../index.js';
import type { Arguments } from './arguments.js';
import type { Terminal } from './terminal.js';

/** What a command has to work with. */
export interface Session {
  readonly args: Arguments;
  readonly client: LockClient;
  readonly terminal: Terminal;
  /** Aborts when the user ends the command. */
  readonly signal: AbortSignal;
}

/** What the exit code of the command says. */
export const EXIT = {
  ok: 0,
  /** The answer is no: nothing is locked under this name, the lock was not freed, or the doctor found an error. */
  no: 1,
  /** The arguments are wrong. No command was sent. */
  usage: 2,
  /** Redis is unavailable, or refuses the command. */
  redis: 3,
  /** The user ended the command (Ctrl-C). */
  interrupted: 130,
} as const;
