/* The error and the effects of a request that Redis refused. */
import type { RefusedError } from '../../errors.js';
import type { Operation } from '../scripts/script.js';
import { isRefusedInside, refusal } from '../server-error.js';
import { channelOf, type RequestArgs } from './command-args.js';

type AnyOperation = Pick<Operation<readonly string[], RequestArgs, unknown>, 'name' | 'script'>;

/** The error, with the permission that the user of the connection lacks. */
export function refusalOf(
  { name, script }: AnyOperation,
  keys: readonly string[],
  args: RequestArgs,
  publish: string,
  error: Error,
): RefusedError {
  return refusal(name, error, { keys, channel: channelOf(args, publish), publish, source: script?.source });
}

/**
 * Whether the script may have written something before Redis refused one of its commands. Redis does not undo such writes.
 * An error that does not name the line may come from any line.
 */
export function mayHaveWritten({ script }: AnyOperation, error: Error): boolean {
  if (!isRefusedInside(error)) return false;
  const line = Number(/@user_script:\s?(\d+)/.exec(error.message)?.[1]);
  return !line || (script?.writtenAt ?? []).some(([from, to]) => line >= from && line <= to);
}
