import type { Clock } from '../../clock.js';
import { RedisUnavailableError } from '../../errors.js';
import type { Operation } from '../scripts/script.js';
import { Rolls } from './rolls.js';
import { ScriptRequest, type RequestTerms } from './script-request.js';
import type { CommandRoutes } from '../topologies/topology.js';

/** Runs every script and every plain read. */
export class ScriptExecutor implements RequestTerms {
  closed = false;
  readonly rolls: Rolls;

  constructor(
    readonly routes: CommandRoutes,
    readonly clock: Clock,
    readonly commandTimeout: number,
    readonly attemptMs: number,
  ) {
    this.rolls = new Rolls(this, clock);
  }

  /** Sends the operation, and returns its pending request. */
  run<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
    operation: Operation<Keys, Args, Reply>,
    keys: Keys,
    args: Args,
  ): ScriptRequest<Reply> {
    return new ScriptRequest(this, operation, keys, args);
  }

  /** Resolves with the reply of an operation that never has to be undone. `until` is a monotonic time in ms. */
  async ask<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
    operation: Operation<Keys, Args, Reply>,
    keys: Keys,
    args: Args,
    until?: number,
  ): Promise<Reply> {
    const sent = this.run(operation, keys, args);
    const request = await (until === undefined ? sent.done : sent.doneBy(until));
    const { error } = request;
    // The operation leaves nothing to undo, whether Redis replied or not, so the outcome is never `unknown`.
    if (error instanceof RedisUnavailableError)
      throw new RedisUnavailableError(error.message, 'none', { cause: error.cause });
    if (error !== undefined) throw error;
    return request.reply as Reply;
  }
}
