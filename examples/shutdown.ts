// How does a server stop at SIGTERM without losing the work that it has begun?
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'holdfast';
import { holdForRequest } from 'holdfast/http';
import { openRedis } from './support/redis.js';

const LIMIT_MS = 10_000;

await using redis = await openRedis();
const client = createClient({ url: redis.url });
const stock = client.getLock('example:shutdown:stock');

const server = createServer((request, response) => {
  holdForRequest(request, response, { client, key: stock.name, waitTime: 5_000 }, () => {
    void pause(200).then(() => response.end('taken'));
  }).catch(() => response.writeHead(423).end());
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');

/** Work that no request waits for. It begins a nested section although the client drains. */
const report = client.getLock('example:shutdown:report').withLock(async () => {
  await once(process, 'SIGTERM');
  await pause(400);
  await stock.withLock({ waitTime: 5_000 }, () => console.log('the report is written'));
});

/** In this order: no new requests, the end of those that run, the end of other sections, and then the client. */
async function shutDown(): Promise<void> {
  const answered = once(server, 'close');
  server.close();
  // A connection that is kept alive becomes idle after its response.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const limit = setTimeout(() => server.closeAllConnections(), LIMIT_MS);
  await answered;
  clearInterval(idle);
  clearTimeout(limit);
  console.log('the server is closed');
  const { drained, holds } = await client.close({ drain: LIMIT_MS, releaseHolds: true });
  console.log(`the client is closed, drained: ${drained}, left: ${holds.length}`);
}

const stopped = once(process, 'SIGTERM').then(shutDown);
const { port } = server.address() as AddressInfo;
const running = fetch(`http://127.0.0.1:${port}`).then((response) => response.text());
while (!(await stock.isLocked())) await pause(5);
process.kill(process.pid, 'SIGTERM');
await Promise.all([stopped, report]);
console.log(`the request that ran: ${await running}`);

await using other = createClient({ url: redis.url });
console.log(`locked afterwards: ${await other.getLock(stock.name).isLocked()}`);
