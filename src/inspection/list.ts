import { ClientClosedError, InvalidArgumentError, LockAbortedError, RedisUnavailableError } from '../errors.js';
import { checkWellFormed, refuseUnknown } from '../options.js';
import { channels, scan } from '../redis/scripts/server.js';
import { keysMeantBy, keysOfChannel, scansFor, WAITING_PATTERNS } from './candidates.js';
import { batchesOf, describe, ifRefused, type Inspecting, type ReadEntry } from './describe.js';
import { globMatcher, LONGEST_PATTERN } from './glob.js';
import { weightOf, type Server } from './servers.js';

/** The options of {@link LockClient.list}. */
export interface ListOptions {
  /**
   * A pattern of Redis for the names, such as `order:*`: `*`, `?` and `[abc]` are special, and a `\` before one of them
   * makes it an ordinary character. It matches as in the commands `KEYS` and `SCAN`, byte by byte. It has at most 1,000
   * bytes.
   *
   * @defaultValue every name
   */
  match?: string | undefined;
  /** Number of entries after which the list ends. @defaultValue no limit */
  limit?: number | undefined;
  /** Ends the list before its next page. */
  signal?: AbortSignal | undefined;
}

/** Number of keys that one SCAN examines. Redis serves no other client during that time. */
const PAGE = 250;

/**
 * Checks the arguments and returns the list. The list sends no command before its first entry is requested.
 *
 * @throws {InvalidArgumentError} An option is invalid.
 */
export function list(inspecting: Inspecting, options: ListOptions = {}): AsyncGenerator<ReadEntry, void, undefined> {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new InvalidArgumentError('options', 'an object', options);
  }
  refuseUnknown('options', options, ['match', 'limit', 'signal']);
  const { match = '*', limit = Infinity, signal } = options;
  if (typeof match !== 'string' || match === '' || Buffer.byteLength(match) > LONGEST_PATTERN) {
    const expectation = `a pattern of Redis of at most ${LONGEST_PATTERN} bytes, such as order:*`;
    throw new InvalidArgumentError('match', expectation, match);
  }
  if (limit !== Infinity && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new InvalidArgumentError('limit', 'an integer of at least 1', limit);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidArgumentError('signal', 'an AbortSignal', signal);
  }
  return entries(inspecting, checkWellFormed(match, 'match'), limit, signal);
}

async function* entries(
  inspecting: Inspecting,
  match: string,
  limit: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<ReadEntry, void, undefined> {
  const { keyPrefix, client } = inspecting;
  const isMatch = globMatcher(match);
  const check = (): void => {
    if (client.closed) throw new ClientClosedError();
    if (signal?.aborted === true) throw new LockAbortedError(match, signal.reason);
  };
  check();
  // SCAN may return a key twice, and several keys may belong to one name.
  const listed = new Set<string>();
  let left = limit;
  const { servers, missing } = await inspecting.servers.all();
  const lacking = [...missing];
  let cause: unknown;
  for (const server of servers) {
    try {
      for await (const { keys, isSign } of pages(inspecting, server, match)) {
        check();
        const names = keys
          .filter((key) => key.startsWith(keyPrefix))
          .map((key) => key.slice(keyPrefix.length))
          .filter((name) => name !== '' && isMatch(name) && !listed.has(name));
        for (const batch of batchesOf([...new Set(names)])) {
          for (const entry of await describe(inspecting, server, batch, () => isSign)) {
            listed.add(entry.name);
            yield entry;
            left -= 1;
            if (left === 0) return;
          }
          check();
        }
      }
    } catch (error) {
      // The other servers of a cluster may reply.
      if (!(error instanceof RedisUnavailableError) || server.address === undefined) throw error;
      lacking.push(`server ${server.address}`);
      cause = error;
    }
  }
  if (lacking.length === 0) return;
  throw new RedisUnavailableError(`the list lacks the names of ${lacking.join(', ')}`, 'none', { cause });
}

interface Page {
  readonly keys: readonly string[];
  /** Whether a number with one of these keys is a semaphore or latch. A sorted set beside it does not say so. */
  readonly isSign: boolean;
}

/** The keys that may be those of locks, semaphores and latches, page by page. */
async function* pages({ keyPrefix, pace }: Inspecting, server: Server, match: string): AsyncGenerator<Page> {
  for (const { type, pattern } of scansFor(keyPrefix, match)) {
    let cursor = '0';
    do {
      const page = await server.ask(scan, [], [cursor, 'match', pattern, 'count', String(PAGE), 'type', type]);
      yield { keys: page.keys.flatMap((key) => keysMeantBy(key, type)), isSign: type === 'hash' };
      const weight = weightOf(page.keys);
      if (weight > 1) await pace?.(weight);
      cursor = page.cursor;
    } while (cursor !== '0');
  }
  const ask = server.sharded ? 'shardchannels' : 'channels';
  for (const pattern of WAITING_PATTERNS) {
    // Redis may refuse PUBSUB: then a semaphore is listed only for its other keys.
    const waiting = await server.ask(channels, [], [ask, pattern]).catch(ifRefused<string[]>([]));
    yield { keys: waiting.flatMap(keysOfChannel), isSign: true };
  }
}
