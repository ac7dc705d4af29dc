import { ClientClosedError, InvalidArgumentError, RedisUnavailableError, RefusedError } from '../../../index.js';
import type { LockClient } from '../../../index.js';
import { isSameSecret } from '../../shared/same-secret.js';
import type { UnlockReply, UnlockRequest } from '../contract/messages.js';
import type { Hub } from '../live/hub.js';
import { Refusal } from './refusal.js';
import type { MountedRequest } from './requests.js';

const MAX_BODY_BYTES = 8_192;
/** The longest `by` and `address` that the client accepts. */
const MAX_LABEL = 200;

/**
 * Frees a lock, as the user has confirmed it.
 *
 * @throws {Refusal} The request is refused, or Redis does not answer it.
 */
export async function unlock(
  client: LockClient,
  hub: Pick<Hub, 'nameOf'>,
  request: MountedRequest,
  csrf: string,
  user: string | null,
): Promise<UnlockReply> {
  if (!isSameSecret(request.headers['holdfast-csrf'], csrf)) {
    throw new Refusal(403, 'csrf', 'the token of the page is missing or old: reload the page');
  }
  const { owner, ...lock } = checkBody(await bodyOf(request));
  const name = lock.name ?? hub.nameOf(lock.id ?? '');
  if (name === undefined) throw new Refusal(404, 'not found', 'no open page shows a lock with this id');
  const by = (user ?? 'a user of the inspector').slice(0, MAX_LABEL);
  const address = request.socket.remoteAddress?.slice(0, MAX_LABEL);
  try {
    return { freed: await client.forceUnlock(name, { ifOwner: owner, by, address }) };
  } catch (error) {
    throw refusalOf(error);
  }
}

async function bodyOf(request: MountedRequest): Promise<unknown> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new Refusal(415, 'not JSON', 'the body must be application/json');
  }
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  // A parser in front of the inspector has read the body. Some parsers set `body` without reading it.
  if (request.body !== undefined && request.readableDidRead) return request.body;
  if (request.readableEnded || request.readableDidRead) {
    throw new Refusal(400, 'invalid', 'the body was already read: mount the inspector before parsers of bodies');
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new Refusal(400, 'not JSON', 'the body is no JSON');
  }
}

const tooLarge = (): Refusal =>
  new Refusal(413, 'too large', `the body has more than ${MAX_BODY_BYTES} bytes`, { connection: 'close' });

function checkBody(body: unknown): UnlockRequest {
  const { name, id, owner, confirm } = (body ?? {}) as Partial<Record<keyof UnlockRequest, unknown>>;
  const shown = name ?? id;
  if (typeof shown !== 'string' || typeof owner !== 'string' || typeof confirm !== 'string') {
    throw new Refusal(400, 'invalid', 'the body must have the strings name or id, owner and confirm');
  }
  if (confirm !== shown) throw new Refusal(400, 'not confirmed', 'this is not the name or id of the lock');
  return { ...(typeof name === 'string' ? { name } : { id: shown }), owner, confirm };
}

function refusalOf(error: unknown): unknown {
  if (error instanceof InvalidArgumentError) return new Refusal(400, 'invalid', error.message);
  if (error instanceof ClientClosedError) return new Refusal(503, 'closed', error.message);
  if (error instanceof RefusedError) return new Refusal(502, 'refused', error.message);
  if (!(error instanceof RedisUnavailableError)) return error;
  if (error.outcome !== 'unknown') return new Refusal(503, 'unavailable', error.message);
  const message = `The lock may be free or not: look at it before you try again. ${error.message}`;
  return new Refusal(503, 'unknown outcome', message);
}
