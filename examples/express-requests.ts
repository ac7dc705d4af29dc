// How does an HTTP request hold a lock until its response is sent?
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import express, { type Request } from 'express';
import { createClient } from 'holdfast';
import { lockRequest, requestLock } from 'holdfast/express';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });
const orderLock = (id: string): string => `example:http-order:${id}`;

const app = express();
app.set('env', 'test'); // otherwise Express prints the error of a busy lock
app.post(
  '/orders/:id/pay',
  lockRequest({ client, key: ({ params }: Request<{ id: string }>) => orderLock(params.id), retryAfter: 2 }),
  async (request, response) => {
    const { signal } = requestLock(request)!;
    // A disconnected client aborts the signal, and the lock is released.
    await pause(200, undefined, { signal }).catch(() => undefined);
    response.send(signal.aborted ? 'too late' : `paid ${request.params.id}`);
  },
);

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
const pay = (id: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}/orders/${id}/pay`, { method: 'POST', ...(signal && { signal }) });

/** Waits until a request holds the lock, or until no request holds it. */
async function whenLocked(id: string, locked: boolean): Promise<void> {
  while ((await client.getLock(orderLock(id)).isLocked()) !== locked) await pause(5);
}

const first = pay('7');
await whenLocked('7', true);
const second = await pay('7');
console.log(
  `second request: ${second.status} ${second.statusText}, Retry-After: ${second.headers.get('retry-after')} s`,
);
console.log(`another order: ${(await pay('8')).status}`);
console.log(`first request: ${await (await first).text()}`);

const impatient = new AbortController();
const abandoned = pay('9', impatient.signal).then(
  () => 'was answered',
  () => 'disconnected',
);
await whenLocked('9', true);
impatient.abort();
await whenLocked('9', false);
console.log(`the client ${await abandoned}, and the lock is free`);

server.closeAllConnections();
server.close();
