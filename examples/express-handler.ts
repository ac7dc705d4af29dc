// Can a web application keep one lock object in a module, for all its requests?
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import express from 'express';
import { createClient } from 'holdfast';
import { openRedis } from './support/redis.js';

await using redis = await openRedis();
await using client = createClient({ url: redis.url });

// Yes: the lock object is only a name. Each request is a separate flow with its own owner.
const stockLock = client.getLock('example:stock:apples');

const stock = {
  apples: 3,
  inside: 0,
  mostInside: 0,

  /** Acquires the lock itself, so it is safe to call from anywhere. Inside the handler's hold it re-enters. */
  async take(): Promise<boolean> {
    await stockLock.lock();
    try {
      this.mostInside = Math.max(this.mostInside, ++this.inside);
      const seen = this.apples;
      await pause(20); // a query
      if (seen > 0) this.apples = seen - 1;
      this.inside -= 1;
      return seen > 0;
    } finally {
      await stockLock.unlock();
    }
  },
};

const app = express();
app.post('/orders', async (_request, response) => {
  if (!(await stockLock.tryLock(5_000))) {
    response.status(503).send('busy');
    return;
  }
  try {
    const taken = await stock.take();
    response.status(taken ? 201 : 409).send(taken ? 'ordered' : 'sold out');
  } finally {
    await stockLock.unlock();
  }
});

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
const answers = await Promise.all(
  Array.from({ length: 5 }, async () => {
    const response = await fetch(url, { method: 'POST' });
    return `${response.status} ${await response.text()}`;
  }),
);
server.closeAllConnections();
server.close();

console.log(answers.sort().join('\n'));
console.log(`apples left: ${stock.apples}, inside at once: ${stock.mostInside}`);
