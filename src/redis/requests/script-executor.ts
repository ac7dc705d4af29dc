import type { Clock } from '../../clock.js';
import { RedisUnavailableError } from '../../errors.js';
import type { Operation } from '../scripts/script.js';
import { ScriptRequest, type RequestTerms } from './script-request.js';
import type { CommandRoutes } from '../topologies/topology.js';

/** The one place that runs scripts and reads. */
export class ScriptExecutor implements RequestTerms {
  closed = false;

  constructor(
    readonly routes: CommandRoutes,
    readonly clock: Clock,
    readonly commandTimeout: number,
    readonly attemptMs: number,
  ) {}

  run<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
    operation: Operation<Keys, Args, Reply>,
    keys: Keys,
    args: Args,
  ): ScriptRequest<Reply> {
    return new ScriptRequest(this, operation, keys, args);
  }

  /** For calls whose effect needs no bookkeeping: the reply, or the request's error. `until`: monotonic ms. */
  async ask<Keys extends readonly string[], Args extends readonly (string | number)[], Reply>(
    operation: Operation<Keys, Args, Reply>,
    keys: Keys,
    args: Args,
    until?: number,
  ): Promise<Reply> {
    const sent = this.run(operation, keys, args);
    const request = await (until === undefined ? sent.done : sent.doneBy(until));
    const { error } = request;
    // What only reads leaves nothing behind, answered or not.
    if (error instanceof RedisUnavailableError)
      throw new RedisUnavailableError(error.message, 'none', { cause: error.cause });
    if (error !== undefined) throw error;
    return request.reply as Reply;
  }
}
