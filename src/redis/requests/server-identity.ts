import { RefusedError } from '../../errors.js';
import { info } from '../scripts/server.js';
import type { ScriptExecutor } from './script-executor.js';

const RUN_ID = /^run_id:(\w+)/m;
const PORT = /^tcp_port:(\d+)/m;

/**
 * Tells which server a client uses. Processes may name one server differently, so its name does not tell it. Its run id
 * does: every process reads the same one. The run id changes when the server restarts, and at a failover.
 */
export class ServerIdentity {
  /** What was read, and on which connection. `id`: `undefined` if Redis does not tell it. */
  #read: { readonly session: object; readonly id: string | undefined } | undefined;
  #reading: Promise<void> | undefined;

  constructor(
    /** The server or cluster, as the configuration names it. */
    readonly name: string,
    private readonly executor: ScriptExecutor,
    /** The number of the database; `undefined` in a cluster, which has no identity. */
    private readonly database: number | undefined,
  ) {}

  /** The run id, the port and the database; `undefined` if they are not known of the server that the client is connected to now. */
  get known(): string | undefined {
    return this.#isCurrent ? this.#read?.id : undefined;
  }

  /** Whether the client has no connection to the server. Not known of a cluster. */
  get isAway(): boolean {
    return this.database !== undefined && this.#session === undefined;
  }

  /** Whether a look could tell more: the client has not asked on its connection. */
  get isUnread(): boolean {
    return this.database !== undefined && !this.#isCurrent;
  }

  /** Reads the identity once for each connection. Never rejects. */
  look(): Promise<void> {
    if (!this.isUnread) return Promise.resolve();
    return (this.#reading ??= this.#ask().finally(() => (this.#reading = undefined)));
  }

  get #session(): object | undefined {
    return this.executor.routes.connectionFor('', false)?.session;
  }

  get #isCurrent(): boolean {
    const session = this.#session;
    return session !== undefined && session === this.#read?.session;
  }

  async #ask(): Promise<void> {
    const before = this.#session;
    const text = await this.executor.ask(info, [], ['server']).catch((error: unknown) => {
      // Redis is unavailable, or the client is closed: the next look asks again.
      return error instanceof RefusedError ? '' : undefined;
    });
    const session = this.#session;
    if (text === undefined || session === undefined || (before !== undefined && before !== session)) return;
    const runId = RUN_ID.exec(text)?.[1];
    // The port tells databases of a service apart that reports one run id for all of them.
    const port = PORT.exec(text)?.[1] ?? '';
    this.#read = { session, id: runId === undefined ? undefined : `${runId}:${port}/${this.database}` };
  }
}
