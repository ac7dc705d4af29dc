import type { Operation } from '../../../src/redis/scripts/script.js';
import { admin } from '../redis.js';

type AnyOperation = Operation<readonly string[], readonly (string | number)[], unknown>;

/** Runs a script or a read without the client, never too late, and decodes the reply as the client does. */
export async function runOperation<Reply>(
  operation: Pick<Operation<never, never, Reply>, 'script' | 'name' | 'notAfter' | 'reply'>,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<Reply> {
  const { script, name, notAfter } = operation as AnyOperation;
  if (script === undefined) return operation.reply(await admin().call(name, ...keys, ...args));
  const all = [...(notAfter === 'first' ? ['0'] : []), ...args, ...(notAfter === 'last' ? ['0'] : [])];
  return operation.reply(await admin().eval(script.source, keys.length, ...keys, ...all));
}
